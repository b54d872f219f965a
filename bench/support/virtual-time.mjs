// Virtual time for code that was not made for it: import this module first. It replaces the clocks and timers of the
// process, so it needs a process of its own.

/** What happens within one slot happens at once. */
const SLOT_MS = 0.25;

const drained = globalThis.setImmediate;
/** By slot: what happens then, in the order in which it was asked for. */
const agenda = new Map();
let nowMs = 0;

export const now = () => nowMs;

/** Calls back at a time, or in the next slot if that is over. */
export function at(timeMs, call) {
  const slot = Math.max(Math.ceil(timeMs / SLOT_MS), Math.floor(nowMs / SLOT_MS) + 1);
  const calls = agenda.get(slot);
  if (calls === undefined) agenda.set(slot, [call]);
  else calls.push(call);
}

/**
 * Lets time pass.
 * @param onSlot is called at the beginning of each slot with its end
 */
export async function pass(untilMs, onSlot) {
  for (let slot = Math.floor(nowMs / SLOT_MS) + 1; slot * SLOT_MS <= untilMs; slot++) {
    nowMs = slot * SLOT_MS;
    const calls = agenda.get(slot);
    agenda.delete(slot);
    for (const call of calls ?? []) call();
    onSlot(nowMs + SLOT_MS);
    // All promises that can be settled are settled now.
    await new Promise((resolve) => drained(resolve));
  }
}

const epoch = Date.now();
performance.now = () => nowMs;
Date.now = () => epoch + Math.floor(nowMs);
Object.assign(globalThis, {
  setTimeout(call, ms = 0) {
    const timer = { isCleared: false, unref: () => timer, ref: () => timer };
    at(nowMs + ms, () => timer.isCleared || call());
    return timer;
  },
  clearTimeout(timer) {
    if (timer) timer.isCleared = true;
  },
});
