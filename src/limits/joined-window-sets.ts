import { getOrCreate } from '../base/get-or-create.ts';
import type { DecisionPart } from '../core/decision.ts';
import { createWindowSet, type WindowSet } from '../core/window-set.ts';

/** The window sets of several parts as one, for what shows them. Stores never see it. */
interface Joined {
  readonly windowSet: WindowSet;
  /** Of these parts and one more, by its window set, then by its subject. */
  readonly further: WeakMap<WindowSet, Map<string, Joined>>;
}

const joined = /* @__PURE__ */ new WeakMap<WindowSet, Map<string, Joined>>();
const ACCOUNT = 'account';
const NO_WINDOWS = /* @__PURE__ */ createWindowSet([], []);

/**
 * The windows of every part, in the order of checking, as one window set. Windows of a group carry its name. The same
 * parts give the same object, because what shows windows caches by it.
 */
export function joinWindowSets(parts: readonly DecisionPart[]): WindowSet {
  let known = joined;
  let before = NO_WINDOWS;
  for (const { decision, subject } of parts) {
    const { windowSet } = decision;
    // Such as the part of the requests in flight.
    if (windowSet.windows.length === 0) continue;
    const bySubject = getOrCreate(known, windowSet, () => new Map<string, Joined>());
    const { windowSet: both, further } = getOrCreate(bySubject, subject, () => ({
      windowSet: before === NO_WINDOWS && subject === ACCOUNT ? windowSet : joinTwo(before, windowSet, subject),
      further: new WeakMap(),
    }));
    before = both;
    known = further;
  }
  return before;
}

function joinTwo(before: WindowSet, { windows, lane }: WindowSet, subject: string): WindowSet {
  const named = windows.map((window) => (subject === ACCOUNT ? window : Object.freeze({ ...window, group: subject })));
  const all = Object.freeze([...before.windows, ...named]);
  return Object.freeze({
    ...before,
    lane,
    windows: all,
    durations: Float64Array.from(all, ({ durationMs }) => durationMs),
    maxes: Float64Array.from(all, ({ max }) => max),
  });
}
