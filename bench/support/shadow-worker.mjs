// The process of the topic shadow: two limiters, one of them with a candidate, take turns. It measures the time until
// the caller goes on. The candidate's own work is done in later turns of the event loop, which are not measured. Prints
// JSON: by workload and limiter, one figure per round.

import { median } from 'headgate-bench/statistics';
import { createLimiter } from '../../dist/index.js';
import { createMemoryStore } from '../../dist/memory.js';
import { withShadow } from '../../dist/shadow.js';

const [, , rounds, samples] = process.argv.map(Number);
const CALLS_PER_TURN = [1, 16];
/** Until the compiler is done. A candidate drops what is more than 1,000 calls per turn. */
const WARM_UP = { calls: 500, samples: 200 };
const PLENTY = 1_000_000_000;
const limits = { allMethods: [`${PLENTY}/1m`, `${PLENTY}/1d`] };
const requests = Array.from({ length: 1_000 }, (_, i) => ({ account: `account_${i}`, route: 'POST /api/v1/emails' }));

const create = () => createLimiter({ store: createMemoryStore(), limits, validate: false });
const LIMITERS = { without: create(), with: withShadow(create(), { limits, store: createMemoryStore() }) };
const WORKLOADS = {
  consumeSync: (limiter, from, calls) => {
    for (let i = 0; i < calls; i++) limiter.consumeSync(requests[(from + i) % requests.length]);
  },
  'await consume': async (limiter, from, calls) => {
    for (let i = 0; i < calls; i++) await limiter.consume(requests[(from + i) % requests.length]);
  },
};

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
const idle = async () => {
  await LIMITERS.with.shadow.idle();
  await nextTurn();
};

/** Nanoseconds per call, until the caller goes on after the last one. */
async function sample(run, limiter, from, calls) {
  await idle();
  const began = process.hrtime.bigint();
  const running = run(limiter, from, calls);
  if (running !== undefined) await running;
  return Number(process.hrtime.bigint() - began) / calls;
}

/** The least and the median of the samples of one round, of each limiter. */
async function round(run, calls, count = samples) {
  const times = { without: [], with: [] };
  for (let i = 0; i < count; i++) {
    const names = i % 2 === 0 ? ['without', 'with'] : ['with', 'without'];
    for (const name of names) times[name].push(await sample(run, LIMITERS[name], i * calls, calls));
  }
  const figures = Object.entries(times).map(([name, all]) => [name, { least: Math.min(...all), median: median(all) }]);
  return Object.fromEntries(figures);
}

for (const run of Object.values(WORKLOADS)) await round(run, WARM_UP.calls, WARM_UP.samples);
const figures = {};
for (const [workload, run] of Object.entries(WORKLOADS)) {
  for (const calls of CALLS_PER_TURN) {
    const all = [];
    for (let i = 0; i < rounds; i++) all.push(await round(run, calls));
    figures[`${workload}, ${calls} per turn`] = all;
  }
}
console.log(JSON.stringify({ figures, total: LIMITERS.with.shadow.figures().total }));
process.exit();
