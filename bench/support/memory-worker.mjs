// A process of the memory topic: one candidate, one number of keys, every check accepted or every one refused. Tells the nanoseconds of a check.
// CPU time of the process: what else the machine does counts little, and collections are paid by whoever causes them, also those on other threads.

import { Bench } from 'tinybench';
import { answerWith } from './member.mjs';
import { CANDIDATES } from './memory-candidates.mjs';
import { pseudoRandomOrder } from './order.mjs';

const { candidate, keyCount, denied } = JSON.parse(process.argv[2]);
/** Checks in one timed sample: the timer costs as much as a check. */
const BATCH = 2_000;
/** None ends while it is measured. */
const DAY_MS = 86_400_000;

const { make, waits } = CANDIDATES[candidate];
const accounts = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
const order = pseudoRandomOrder(keyCount);
const windowsMs = [1, 2, 3, 7].map((days) => days * DAY_MS);
const { ask, isAccepted } = make({ accounts, max: denied ? 1 : 1_000_000_000, windowsMs });

let at = 0;
const next = () => accounts[order[at++ & (order.length - 1)]];
let accepted = 0;
const answered = (answer) => {
  if (isAccepted(answer)) accepted++;
};

function inTurn(account, amount) {
  for (let i = 0; i < amount; i++) answered(ask(account(i)));
}

async function awaiting(account, amount) {
  for (let i = 0; i < amount; i++) {
    try {
      answered(await ask(account(i)));
    } catch (refusal) {
      if (refusal instanceof Error) throw refusal;
    }
  }
}

const check = waits ? awaiting : inTurn;
await check((i) => accounts[i], keyCount);

const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

async function sample(seconds) {
  const bench = new Bench({ now: cpuMs, time: seconds * 1_000, iterations: 4, warmup: false, throws: true });
  bench.add(candidate, waits ? () => awaiting(next, BATCH) : () => inTurn(next, BATCH));
  accepted = 0;
  at = (at + 7_919) % order.length;
  const [task] = await bench.run();
  const { latency } = task.result;
  const all = latency.samplesCount * BATCH;
  if (denied ? accepted > 0 : accepted < all) throw new Error(`${candidate}: ${accepted} of ${all} accepted`);
  // The mean, not the middle one: most batches pass without a collection.
  return { ns: (latency.mean * 1e6) / BATCH };
}

answerWith(({ seconds }) => sample(seconds));
