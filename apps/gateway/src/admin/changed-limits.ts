import { parseLimit } from 'headgate';
import { layerOf } from 'headgate/internal';
import type { Limit, LimitName } from 'headgate/limits';
import type { LimitChange, LimitOrigin, LimitSource } from 'headgate/shared-limits';
import type { Account } from '../config/schema.ts';
import { textsOf } from './limit-origins.ts';

/** A change of one limit, and the layer that contains the limit. */
export interface ChangeOfLayer {
  readonly layer: LimitSource['layer'];
  readonly name: string;
  /** Undefined: the limit of every route. */
  readonly route: string | undefined;
  /** Undefined: the limit of the base applies again. */
  readonly windows: Limit | undefined;
}

/** A limit that would replace an account's current limit. */
export interface ChangedLimit {
  readonly limit: LimitName;
  /** Empty: there would be no limit. */
  readonly windows: Limit;
}

/** The most specific first. */
const SPECIFIC: readonly LimitSource['layer'][] = ['account', 'provider', 'plan', 'default', 'route'];

/** @throws LimitError */
export function changeOfLayer({ target, windows }: LimitChange): ChangeOfLayer {
  return {
    ...layerOf(target),
    route: target.route,
    windows: windows === 'recommended' ? undefined : parseLimit(windows),
  };
}

/** Whether a change is about a layer that applies to the account. */
export function isOf({ id, provider, plan }: Account, { layer, name }: ChangeOfLayer): boolean {
  if (layer === 'default') return true;
  return name === (layer === 'account' ? id : layer === 'provider' ? provider : plan);
}

/**
 * The limits of an account on a route that would become others.
 * @param origins where its limits come from now
 * @param changes those that are about one of its layers
 */
export function changedLimits(
  origins: readonly LimitOrigin[],
  changes: readonly ChangeOfLayer[],
  route: string,
): ChangedLimit[] {
  return origins.flatMap(({ limit, applies, hides }) => {
    const sources = applies === undefined ? [] : [applies, ...hides];
    const wanted = changes.filter((change) => change.route === (limit === 'route' ? route : undefined));
    const before = textOf(sources[0]);
    const after = wanted.reduce(afterChange, sources)[0];
    return textOf(after) === before ? [] : [{ limit, windows: after?.windows ?? [] }];
  });
}

/** The sources of a limit after a change of one layer, the most specific first. */
function afterChange(
  sources: readonly Pick<LimitSource, 'layer' | 'windows' | 'adjustment'>[],
  { layer, windows }: ChangeOfLayer,
) {
  const others = sources.filter((source) => source.layer !== layer || source.adjustment === undefined);
  if (windows === undefined) return others;
  const rank = (of: LimitSource['layer']): number => SPECIFIC.indexOf(of);
  const below = others.findIndex((source) => rank(source.layer) >= rank(layer));
  return others.toSpliced(below === -1 ? others.length : below, 0, { layer, windows, adjustment: undefined });
}

function textOf(source: Pick<LimitSource, 'windows'> | undefined): string {
  return source === undefined ? '' : textsOf(source.windows).join();
}
