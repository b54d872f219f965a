// A million keys run out at once while traffic goes on: how long is the event loop held? Prints JSON.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';

const keyCount = Number(process.argv[2]);
const ROUTE = 'POST /api/v1/emails';
let time = 1_000_000;
const store = createMemoryStore({ maxKeys: keyCount, clock: { now: () => time } });
const limiter = createLimiter({
  store,
  limits: { allMethods: ['60/2m', '5000/2d'], routes: { [ROUTE]: ['10/1m', '200/1d'] } },
});
for (let i = 0; i < keyCount; i++) limiter.consumeSync({ account: `account_${i}`, route: ROUTE });
globalThis.gc?.();
await turn();

/** Turns with the same traffic, and the longest of them; `monitorEventLoopDelay` sees what a turn of ours cannot, such as collections between. */
async function run(turns, request) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  let longest = 0;
  let calls = 0;
  for (let i = 0; i < turns; i++) {
    const began = performance.now();
    for (let j = 0; j < 200; j++) request(calls++);
    longest = Math.max(longest, performance.now() - began);
    await turn();
  }
  delay.disable();
  return { longestTurnMs: longest, loopDelayMs: delay.max / 1e6, calls };
}

const live = await run(5_000, (i) => limiter.consumeSync({ account: `account_${i % keyCount}`, route: ROUTE }));
time += 3 * 86_400_000;
let swept = 0;
const expiring = { longestTurnMs: 0, loopDelayMs: 0, calls: 0 };
// New accounts come while the old ones leave.
while (swept < keyCount && expiring.calls < keyCount * 4) {
  const part = await run(500, (i) =>
    limiter.consumeSync({ account: `later_${(expiring.calls + i) % keyCount}`, route: ROUTE }),
  );
  expiring.longestTurnMs = Math.max(expiring.longestTurnMs, part.longestTurnMs);
  expiring.loopDelayMs = Math.max(expiring.loopDelayMs, part.loopDelayMs);
  expiring.calls += part.calls;
  swept = store.stats().swept;
}
console.log(JSON.stringify({ keyCount, live, expiring, swept }));
