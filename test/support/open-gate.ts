import type { GateEntry, GateEvent } from '../../src/gate/index.ts';
import { fingerprint } from '../../src/http/fingerprint/fingerprint.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

/** A request as the gate of {@link openGate} reads it. */
export interface PlainRequest {
  readonly account?: string;
  readonly route?: string;
  readonly key?: string;
}

/** A gate with a limit of two per minute and idempotency keys, and what it did. */
export function openGate(options: Partial<GateOptions<PlainRequest>> = {}) {
  const events: GateEvent[] = [];
  const resolved: string[] = [];
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['2/1m'] } });
  const claims = createMemoryClaimStore();
  const seen = <Value>(name: string, value: Value): Value => {
    resolved.push(name);
    return value;
  };
  const gate = createGate<PlainRequest>({
    limiter,
    account: ({ account }) => seen('account', account),
    route: ({ route }) => seen('route', route),
    idempotency: createIdempotency({ store: claims }),
    idempotent: ({ key }) => seen('idempotent', key === undefined ? undefined : readKey(key)),
    onEvent: (event) => events.push(event),
    logger: false,
    ...options,
  });
  return {
    gate,
    events,
    /** Names of the resolvers, in the order of their calls. */
    resolved,
    claims,
    left: async () => (await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining,
  };
}

const readKey = async (key: string) => ({
  scope: 'app_1',
  key,
  fingerprint: await fingerprint({ method: 'POST', path: '/', body: (async function* () {})() }),
});

/** Status and error object of an answer; 'proceed' if the gate let the request through. */
export function answerOf(entry: GateEntry): Record<string, unknown> | 'proceed' {
  return entry.kind === 'proceed' ? 'proceed' : { ...JSON.parse(String(entry.reply.body)), status: entry.reply.status };
}
