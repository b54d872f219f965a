import { OptionError, UnknownLaneError } from '../base/errors.ts';
import { getOrCreate } from '../base/get-or-create.ts';
import { readByName } from '../base/options.ts';
import { shareOfMax, type WindowSet, withMaxes } from '../core/window-set.ts';

/** A share of every max, for requests that leave the rest to others (S28). */
export interface Lane {
  readonly name: string;
  /** Above 0, and at most 1. */
  readonly share: number;
}

export type Lanes = ReadonlyMap<string, Lane>;

const NOT_SHARE = 'must be a number above 0 and at most 1, such as 0.9';

/** @throws OptionError with the place of the fault */
export function parseLanes(given: Readonly<Record<string, number>> | undefined, place: string): Lanes {
  const shares = readByName(given, place, (share, at) => {
    if (typeof share !== 'number' || !(share > 0 && share <= 1)) throw new OptionError(at, share, NOT_SHARE);
    return share;
  });
  return new Map([...shares].map(([name, share]) => [name, { name, share }]));
}

/** One per window set and lane, because stores cache by the identity of a window set. */
const inLanes = /* @__PURE__ */ new WeakMap<WindowSet, Map<Lane, WindowSet>>();

/**
 * The windows that a request of a lane must fit: the same counters, with a share of each max.
 * @throws UnknownLaneError
 */
export function windowSetInLane(windowSet: WindowSet, lanes: Lanes, name: string): WindowSet {
  const lane = lanes.get(name);
  if (lane === undefined) throw new UnknownLaneError(name, [...lanes.keys()]);
  const ofWindowSet = getOrCreate(inLanes, windowSet, () => new Map<Lane, WindowSet>());
  return getOrCreate(ofWindowSet, lane, () => withMaxes(windowSet, (max) => shareOfMax(max, lane.share), name));
}
