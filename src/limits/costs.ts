import { CostError, describe } from '../base/errors.ts';
import { isPlainObject } from '../base/options.ts';
import { type Cost, REQUESTS } from '../core/unit.ts';
import type { LimitRequest } from './ports.ts';

/** @throws CostError */
export function checkCost(cost: unknown, least: 0 | 1 = 1, place = 'cost'): asserts cost is number {
  if (!Number.isSafeInteger(cost) || (cost as number) < least) throw new CostError(cost, least, place);
}

/**
 * The cost of a request per unit, checked.
 * @param units that limits count, beside requests. A unit that no limit counts would be ignored in silence
 * @throws CostError
 */
export function costsOf(cost: unknown, units: readonly string[], least: 0 | 1 = 1): ReadonlyMap<string, number> {
  if (!isPlainObject(cost)) {
    checkCost(cost, least);
    return costsIn(cost);
  }
  const named = Object.entries(cost).filter(([, value]) => value !== undefined);
  const known = [REQUESTS, ...units];
  const unknown = named.find(([unit]) => !known.includes(unit));
  if (unknown !== undefined || named.length === 0) {
    const fault = unknown === undefined ? 'must name a unit' : `has the unknown unit ${describe(unknown[0])}`;
    throw new CostError(unknown?.[1], least, 'cost', `${fault} (expected ${known.join(' or ')})`);
  }
  for (const [unit, value] of named) checkCost(value, least, `cost.${unit}`);
  return new Map(named as [string, number][]);
}

/** A checked cost per unit. */
export function costsIn(cost: Cost): ReadonlyMap<string, number> {
  return new Map(typeof cost === 'number' ? [[REQUESTS, cost]] : Object.entries(cost));
}

/** Checks a cost without the limits, which know the units. @throws CostError */
export function checkCosts(cost: unknown, least: 0 | 1 = 1): asserts cost is Cost {
  costsOf(cost, Object.keys(Object(cost)), least);
}

/** A copy of a request, because its caller may change it while it waits. */
export function copyOfRequest<Request extends LimitRequest>(request: Request): Request {
  const { cost, groups } = request;
  return {
    ...request,
    ...(isPlainObject(cost) ? { cost: { ...cost } } : {}),
    ...(isPlainObject(groups) ? { groups: { ...groups } } : {}),
  };
}
