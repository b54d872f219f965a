// A process of the topic memory: one candidate, one number of keys, every check accepted or every check rejected. It
// reports the nanoseconds per check. They are CPU time of the process: other work on the machine has little influence,
// and a candidate pays for its own garbage collections, also on other threads.

import { cpuMicros } from 'headgate-bench/cpu';
import { answerWith } from 'headgate-bench/member';
import { pseudoRandomOrder } from 'headgate-bench/order';
import { Bench } from 'tinybench';
import { CANDIDATES } from './memory-candidates.mjs';

const { candidate, keyCount, denied } = JSON.parse(process.argv[2]);
/** Checks per timed sample, because the timer costs as much as a check. */
const BATCH = 2_000;
/** Windows last days, so none ends during the measurement. */
const DAY_MS = 86_400_000;

const { make, waits } = CANDIDATES[candidate];
const accounts = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
const order = pseudoRandomOrder(keyCount);
const windowsMs = [1, 2, 3, 7].map((days) => days * DAY_MS);
const { ask, isAccepted } = make({ accounts, max: denied ? 1 : 1_000_000_000, windowsMs });

let at = 0;
const next = () => accounts[order[at++ & (order.length - 1)]];
let accepted = 0;
const count = (answer) => {
  if (isAccepted(answer)) accepted++;
};

function checkSync(account, amount) {
  for (let i = 0; i < amount; i++) count(ask(account(i)));
}

async function checkAwaited(account, amount) {
  for (let i = 0; i < amount; i++) {
    try {
      count(await ask(account(i)));
    } catch (rejection) {
      if (rejection instanceof Error) throw rejection;
    }
  }
}

const check = waits ? checkAwaited : checkSync;
await check((i) => accounts[i], keyCount);

const cpuMs = () => cpuMicros() / 1_000;

async function sample(seconds) {
  const bench = new Bench({ now: cpuMs, time: seconds * 1_000, iterations: 4, warmup: false, throws: true });
  bench.add(candidate, waits ? () => checkAwaited(next, BATCH) : () => checkSync(next, BATCH));
  accepted = 0;
  at = (at + 7_919) % order.length;
  const [task] = await bench.run();
  const { latency } = task.result;
  const all = latency.samplesCount * BATCH;
  if (denied ? accepted > 0 : accepted < all)
    throw new Error(`${candidate}: ${accepted} of ${all} checks accepted, expected ${denied ? 0 : all}`);
  // The mean, not the median: most batches have no garbage collection, so the median would leave out its cost.
  return { ns: (latency.mean * 1e6) / BATCH };
}

answerWith(({ seconds }) => sample(seconds));
