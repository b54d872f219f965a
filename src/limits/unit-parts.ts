import { CostError, isHeadgateError, SubjectError } from '../base/errors.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Decision, WindowStatus } from '../core/decision.ts';
import type { LimitStore } from '../core/ports.ts';
import { type Cost, REQUESTS } from '../core/unit.ts';
import { createWindowSet, EVERY_ROUTE, routeOfUnit, type UnitWindows, type WindowSet } from '../core/window-set.ts';
import { costsIn, costsOf } from './costs.ts';
import { type JointPart, type JointRequest, OF_ACCOUNT, storePart } from './joint-decision.ts';
import { partsOf } from './limiter-parts.ts';
import type { Limiter } from './ports.ts';
import { blockPart } from './slot-part.ts';
import type { Subject } from './window-set-source.ts';

/** What a store counts for one request under one route. */
export interface CountedPart extends UnitWindows {
  readonly route: string;
}

/** A part, and what the request costs there. */
export interface CostedPart extends CountedPart {
  readonly cost: number;
}

const NO_WINDOWS = /* @__PURE__ */ createWindowSet([], []);

/** The window sets of a request by unit, as stores count them, in the order of checking. None without windows. */
export function countedParts(route: string, windowSet: WindowSet): readonly CountedPart[] {
  if (windowSet.windows.length === 0) return [];
  const { units = [{ unit: REQUESTS, windowSet, isShared: false }] } = windowSet;
  return units.map((part) => ({ ...part, route: routeOfUnit(route, part) }));
}

/**
 * The parts that the cost names.
 * @throws CostError if it names none of the windows: they would limit nothing
 */
export function costedParts(
  route: string,
  windowSet: WindowSet,
  costs: ReadonlyMap<string, number>,
  subject = OF_ACCOUNT,
): readonly CostedPart[] {
  const parts = countedParts(route, windowSet);
  const named = parts.flatMap((part) => {
    const cost = costs.get(part.unit);
    return cost === undefined ? [] : [{ ...part, cost }];
  });
  if (named.length > 0 || windowSet.windows.length === 0) return named;
  const expected = [...new Set(parts.map(({ unit }) => unit))].join(' or ');
  const whose = subject === OF_ACCOUNT ? 'the request' : `the group ${subject}`;
  const reason = `must name a unit that the windows of ${whose} count (expected ${expected})`;
  throw new CostError([...costs.keys()].join(' and '), 1, 'cost', reason);
}

/**
 * The parts of a joint decision about one subject.
 * @param subject whose windows they are, as a joint decision names it
 * @throws CostError
 */
export function unitParts(
  store: LimitStore,
  subject: string,
  account: string,
  route: string,
  windowSet: WindowSet,
  costs: ReadonlyMap<string, number>,
): readonly JointPart[] {
  const parts = costedParts(route, windowSet, costs, subject);
  const cost = costs.get(REQUESTS) ?? 1;
  // No window limits the subject.
  if (parts.length === 0) {
    const part = windowSet.inFlight === undefined ? storePart : blockPart;
    return [part(store, subject, account, route, windowSet, cost)];
  }
  const stored = parts.map((part) => storePart(store, subject, account, part.route, part.windowSet, part.cost));
  // A cooldown blocks the route itself (S30), which no part sees that is counted under another one.
  const seesBlocks = parts.some((part) => part.route === route);
  return seesBlocks ? stored : [...stored, blockPart(store, subject, account, route, NO_WINDOWS, cost)];
}

/** The windows of all units, which are read at the same time, in the order of the window set. */
export function peekUnits(
  store: LimitStore,
  account: string,
  route: string,
  windowSet: WindowSet,
): MaybePromise<readonly WindowStatus[]> {
  if (windowSet.units === undefined) return store.peek(account, route, windowSet);
  const reads = countedParts(route, windowSet).map((part) => store.peek(account, part.route, part.windowSet));
  return Promise.all(reads).then((windows) => windows.flat());
}

/** The request that the parts of a joint decision make up. */
export function jointRequest(account: string, route: string, costs: ReadonlyMap<string, number>): JointRequest {
  return { account, route, cost: costs.get(REQUESTS) ?? 0, costs: Object.fromEntries(costs) };
}

/** A part of a decision, and what it cost in the end. */
export type Settlement = readonly [decision: Decision, cost: number];

/**
 * What to settle, and at which cost: each unit and each group was charged by itself, and can be settled once. A cost of 0
 * is a refund of all.
 * @param units of the limits, beside requests
 */
export function settlementsOf(decision: Decision, cost: Cost, units: readonly string[]): readonly Settlement[] {
  const costs = costsIn(cost);
  return (decision.parts ?? [{ decision }]).flatMap(({ decision: part }) => {
    const final = cost === 0 ? 0 : costs.get(unitOfRoute(part.route, units));
    return final === undefined ? [] : [[part, final] as const];
  });
}

/** Why the limits of a subject do not take a cost; undefined if they do. The limits must not be a function. */
export function faultOfCost(limiter: Limiter, subject: Subject, cost: Cost): string | undefined {
  try {
    const costs = costsOf(cost, partsOf(limiter)?.windowSets.units ?? []);
    costedParts(subject.route ?? EVERY_ROUTE, limiter.windowSet(subject), costs);
    return undefined;
  } catch (error) {
    if (isHeadgateError(error, 'invalid_cost')) return error.message;
    throw error;
  }
}

/** The routes under which the units of a route are counted, beside the route itself. */
export function routesOfUnits(route: string, units: readonly string[]): readonly string[] {
  return units.map((unit) => routeOfUnit(route, { unit, isShared: false }));
}

/** The unit that a store counts under a route. */
export function unitOfRoute(route: string, units: readonly string[]): string {
  return units.find((unit) => route.endsWith(`#${unit}`)) ?? REQUESTS;
}

/**
 * Refuses a route that ends as those of units do, so that no caller can choose the counters of a unit.
 * @throws SubjectError
 */
export function checkNoUnit(route: string | undefined, units: readonly string[]): void {
  const unit = route === undefined ? REQUESTS : unitOfRoute(route, units);
  if (unit !== REQUESTS)
    throw new SubjectError('route', route, 'its windows are counted so', `must not end with #${unit}`);
}
