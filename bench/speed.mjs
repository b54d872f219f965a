// One key count: the floors and headgate, interleaved in rounds, in this process. Prints JSON.
import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { Bench } from 'tinybench';
import { pseudoRandomOrder } from './support/order.mjs';
import { median } from './support/report.mjs';

const keyCount = Number(process.argv[2]);
const ROUNDS = 15;
/** Calls in one timed sample: the timer costs as much as a call. */
const BATCH = 2_000;
const MAX = 1_000_000_000;
const DURATIONS = [60_000, 86_400_000, 120_000, 172_800_000];
const ROUTE = 'POST /api/v1/emails';

const accounts = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
const order = pseudoRandomOrder(keyCount);

const now = () => Math.floor(performance.timeOrigin + performance.now());

/** The least that four windows can cost: get the record, compare, add. No decision, no bound, no sweep, no choice of route. */
const records = new Map(accounts.map((account) => [account, DURATIONS.map(() => ({ start: 0, count: 0 }))]));
function floor(account) {
  const time = now();
  const windows = records.get(account);
  for (let i = 0; i < 4; i++) {
    const window = windows[i];
    if (time >= window.start + DURATIONS[i]) {
      window.start = time;
      window.count = 0;
    }
    if (window.count + 1 > MAX) return false;
  }
  for (let i = 0; i < 4; i++) windows[i].count++;
  return true;
}
const floorAwaited = async (account) => floor(account);

const limiter = createLimiter({
  store: createMemoryStore({ maxKeys: Math.max(keyCount, 65_536) }),
  limits: { allMethods: [`${MAX}/2m`, `${MAX}/2d`], routes: { [ROUTE]: [`${MAX}/1m`, `${MAX}/1d`] } },
});
for (const account of accounts) limiter.consumeSync({ account, route: ROUTE });

let at = 0;
const next = () => accounts[order[at++ & (order.length - 1)]];
let accepted = 0;

const tasks = {
  'floor, sync': () => {
    for (let i = 0; i < BATCH; i++) if (floor(next())) accepted++;
  },
  consumeSync: () => {
    for (let i = 0; i < BATCH; i++) if (limiter.consumeSync({ account: next(), route: ROUTE }).accepted) accepted++;
  },
  'floor, awaited': async () => {
    for (let i = 0; i < BATCH; i++) if (await floorAwaited(next())) accepted++;
  },
  'await consume': async () => {
    for (let i = 0; i < BATCH; i++) if ((await limiter.consume({ account: next(), route: ROUTE })).accepted) accepted++;
  },
};

const nanoseconds = Object.fromEntries(Object.keys(tasks).map((name) => [name, []]));
for (let round = -2; round < ROUNDS; round++) {
  const bench = new Bench({ time: 60, iterations: 8, warmup: false });
  for (const [name, task] of Object.entries(tasks)) bench.add(name, task);
  await bench.run();
  // The first rounds only warm up.
  if (round >= 0) for (const task of bench.tasks) nanoseconds[task.name].push((task.result.latency.p50 * 1e6) / BATCH);
}
if (accepted === 0) throw new Error('nothing was accepted: this measured rejections');

const ratio = (name, base) => median(nanoseconds[name].map((value, round) => value / nanoseconds[base][round]));
console.log(
  JSON.stringify({
    keyCount,
    nanoseconds: Object.fromEntries(
      Object.entries(nanoseconds).map(([name, values]) => [
        name,
        { median: median(values), min: Math.min(...values), max: Math.max(...values) },
      ]),
    ),
    syncRatio: ratio('consumeSync', 'floor, sync'),
    awaitedRatio: ratio('await consume', 'floor, awaited'),
  }),
);
