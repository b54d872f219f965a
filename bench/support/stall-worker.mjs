// A process of the stall topic: keys run out in one candidate while traffic goes on. How long is the event loop held, before and meanwhile? Prints JSON.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { CANDIDATES } from './memory-candidates.mjs';

const [, , candidate, count, leastSeconds, atOnce] = process.argv;
const keyCount = Number(count);
/** Checks in a turn, each of another key. */
const TURN = 200;
const LIVE_KEYS = 10_000;
const DAY_MS = 86_400_000;
const MAX = 1_000_000;

const early = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
const late = Array.from({ length: keyCount - LIVE_KEYS }, (_, i) => `later_${i}`);
/** `at once`: the store's clock is set forward, by more than any window. Otherwise keys run out as they came. */
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

// A window has to outlast the filling, on a slow machine as well.
const windowsOf = (ms) => [ms, ms - 1, ms - 2, ms - 3];
const tried = early.slice(0, keyCount / 20);
const fillMs = 20 * (await fill(make({ accounts: tried, max: MAX, windowsMs: windowsOf(DAY_MS) }), tried));
const windowMs = Math.round(Math.max(leastSeconds * 1_000, 2.5 * fillMs));

/**
 * Turns of checks, with a rest between, as long as `goesOn`. `delayMs`: the longest that the loop was late, whoever had the processor. `heldMs`: the
 * most that the process itself worked between two turns, which in their rest may be several pieces of work: no one of them was longer than the loop was late.
 */
async function traffic(accounts, goesOn) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  let heldMs = 0;
  let calls = 0;
  while (goesOn(calls)) {
    const [began, cpuBefore] = [performance.now(), process.cpuUsage()];
    for (let i = 0; i < TURN; i++) {
      const answer = store.ask(accounts[calls++ % accounts.length]);
      if (waits) await answer;
    }
    await wait(1);
    const { user, system } = process.cpuUsage(cpuBefore);
    heldMs = Math.max(heldMs, Math.min(performance.now() - began, (user + system) / 1_000));
  }
  delay.disable();
  const delayMs = delay.max / 1e6;
  return { heldMs: Math.min(heldMs, delayMs), delayMs };
}

const store = make({ accounts: early, max: MAX, windowsMs: windowsOf(windowMs), clock });
const beganAt = performance.now();
const filledMs = await fill(store, early);
const held = store.size();
// What is left of the filling is collected before, not while it is looked at.
gc();
await wait(1);

const few = early.slice(0, LIVE_KEYS);
const until = (time) => () => performance.now() < time;
const firstLeavesAt = beganAt + windowMs;
const before = await traffic(few, until(atOnce ? performance.now() + windowMs / 10 : firstLeavesAt));
ahead = 2 * windowMs;
// Long enough for whoever looks only once in a window.
const isOver = until(performance.now() + windowMs * (atOnce ? 0.5 : 1.2));
const parts = [];
// Newcomers when all are over, as many as have left.
if (!atOnce) parts.push(await traffic(few, until(firstLeavesAt + filledMs)));
parts.push(await traffic(late, (calls) => isOver() || calls < late.length));
const most = (field) => Math.max(...parts.map((part) => part[field]));
const meanwhile = { heldMs: most('heldMs'), delayMs: most('delayMs') };
console.log(JSON.stringify({ windowMs, filledMs, held, left: store.size(), before, meanwhile }));
process.exit();
