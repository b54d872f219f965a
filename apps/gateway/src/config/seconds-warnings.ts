import { isSeconds } from 'headgate/internal';
import type { ConfigIssue } from './config-error.ts';
import type { Config } from './schema.ts';

interface Given {
  readonly path: string;
  readonly ms: number;
  readonly what?: string;
}

/** Milliseconds that are probably seconds. */
export function secondsWarnings({ limits, perAddress, idempotency, routes }: Config): ConfigIssue[] {
  const given: readonly Given[] = [
    ...durationsIn('limits', limits),
    ...durationsIn('perAddress', perAddress),
    { path: 'idempotency.retentionMs', ms: idempotency.retentionMs },
    ...routes.flatMap(({ idempotent }, i) =>
      typeof idempotent !== 'object' || idempotent.retentionMs === undefined
        ? []
        : [{ path: `routes[${i}].idempotent.retentionMs`, ms: idempotent.retentionMs }],
    ),
  ];
  return given.flatMap(({ path, ms, what = '' }) =>
    isSeconds(ms) ? [{ path, reason: `${what}${ms} ms: are seconds meant? Multiply by 1000` }] : [],
  );
}

/** The windows that are objects, once per duration. A text names its unit. */
function durationsIn(path: string, limits: object = {}): Given[] {
  const found = [...JSON.stringify(limits).matchAll(/"durationMs":(\d+)/g)].map(([, ms]) => Number(ms));
  return [...new Set(found)].map((ms) => ({ path, ms, what: 'a window of ' }));
}
