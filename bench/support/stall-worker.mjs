// A process of the topic stall: keys expire in one candidate while traffic goes on. It measures how long the event loop
// is blocked, before the keys expire and while they do. Prints JSON.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { cpuMicros } from 'headgate-bench/cpu';
import { CANDIDATES } from './memory-candidates.mjs';

const [, , candidate, count, leastSeconds, atOnce] = process.argv;
const keyCount = Number(count);
/** Checks per turn of the event loop, each with another key. */
const TURN = 200;
const LIVE_KEYS = 10_000;
const DAY_MS = 86_400_000;
const MAX = 1_000_000;

const early = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
const late = Array.from({ length: keyCount - LIVE_KEYS }, (_, i) => `later_${i}`);
/** With `at once`, the store's clock is moved forward by more than any window. Otherwise keys expire in their order. */
let ahead = 0;
const clock = atOnce && { now: () => Math.floor(performance.timeOrigin + performance.now()) + ahead };
const { make, waits } = CANDIDATES[candidate];

async function fill({ ask }, accounts) {
  const began = performance.now();
  for (const account of accounts) {
    const answer = ask(account);
    if (waits) await answer;
  }
  return performance.now() - began;
}

// Windows must be longer than the time to fill the store, also on a slow machine. A sample gives an estimate.
const windowsOf = (ms) => [ms, ms - 1, ms - 2, ms - 3];
const sample = early.slice(0, keyCount / 20);
const fillMs = 20 * (await fill(make({ accounts: sample, max: MAX, windowsMs: windowsOf(DAY_MS) }), sample));
const windowMs = Math.round(Math.max(leastSeconds * 1_000, 2.5 * fillMs));

/**
 * Runs turns of checks, with a pause after each, while `continues(calls)` is true.
 * @returns
 *   - `delayMs`: the longest time by which the event loop was late, for any reason;
 *   - `heldMs`: the longest time that the process itself worked between two turns, which is the time blocked. During
 *     the pause this can be several pieces of work. None of them was longer than the delay of the loop, so `heldMs` is
 *     at most `delayMs`.
 */
async function traffic(accounts, continues) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  let heldMs = 0;
  let calls = 0;
  while (continues(calls)) {
    const [began, cpuBefore] = [performance.now(), cpuMicros()];
    for (let i = 0; i < TURN; i++) {
      const answer = store.ask(accounts[calls++ % accounts.length]);
      if (waits) await answer;
    }
    await wait(1);
    heldMs = Math.max(heldMs, Math.min(performance.now() - began, (cpuMicros() - cpuBefore) / 1_000));
  }
  delay.disable();
  const delayMs = delay.max / 1e6;
  return { heldMs: Math.min(heldMs, delayMs), delayMs };
}

const store = make({ accounts: early, max: MAX, windowsMs: windowsOf(windowMs), clock });
const beganAt = performance.now();
const filledMs = await fill(store, early);
const keysBefore = store.size();
// The garbage of filling the store is collected now, and not during the measurement.
gc();
await wait(1);

const few = early.slice(0, LIVE_KEYS);
const until = (time) => () => performance.now() < time;
const firstLeavesAt = beganAt + windowMs;
const before = await traffic(few, until(atOnce ? performance.now() + windowMs / 10 : firstLeavesAt));
ahead = 2 * windowMs;
// Long enough also for a candidate that removes keys only once per window.
const isOver = until(performance.now() + windowMs * (atOnce ? 0.5 : 1.2));
const parts = [];
// When all keys have expired, as many new keys arrive.
if (!atOnce) parts.push(await traffic(few, until(firstLeavesAt + filledMs)));
parts.push(await traffic(late, (calls) => isOver() || calls < late.length));
const most = (field) => Math.max(...parts.map((part) => part[field]));
const meanwhile = { heldMs: most('heldMs'), delayMs: most('delayMs') };
console.log(JSON.stringify({ windowMs, filledMs, held: keysBefore, left: store.size(), before, meanwhile }));
process.exit();
