// A process of `npm run bench -- --topic redis`: one candidate on one client. It runs a load on request, and reports its decisions
// and its CPU time.

import { cpuMicros } from 'headgate-bench/cpu';
import { answerWith } from 'headgate-bench/member';
import { pseudoRandomOrder } from 'headgate-bench/order';
import { CANDIDATES } from './redis-candidates.mjs';
import { CLIENTS } from './redis-clients.mjs';

const { client, candidate, port, keyCount, against } = JSON.parse(process.argv[2]);
/** The clock is read once per this many decisions, because reading it costs as much as a local rejection. */
const READ_CLOCK_EVERY = 64;

const connection = await CLIENTS[client](port);
const accounts = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
const order = pseudoRandomOrder(keyCount);
let at = 0;
const next = {
  spread: () => accounts[order[at++ & (order.length - 1)]],
  hot: () => 'account_hot',
  denied: () => 'account_denied',
};

const subjects = new Map();
async function subject(denied) {
  if (!subjects.has(denied)) {
    const created = await CANDIDATES[candidate](connection, { denied, against });
    if (denied) await created.decide(next.denied());
    subjects.set(denied, created);
  }
  return subjects.get(denied);
}

async function run({ keys, concurrency, seconds }) {
  const { decide, isExpected } = await subject(keys === 'denied');
  const account = next[keys];
  let decisions = 0;
  let ended = false;
  const began = performance.now();
  const end = began + seconds * 1_000;
  const cpuBefore = cpuMicros();
  const worker = async () => {
    while (!ended) {
      const answer = await decide(account());
      if (!isExpected(answer))
        throw new Error(`${candidate} on ${client}, ${keys}: unexpected ${JSON.stringify(answer)}`);
      if (++decisions % READ_CLOCK_EVERY === 0) ended = performance.now() >= end;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const elapsed = (performance.now() - began) / 1_000;
  return { decisions, perSecond: decisions / elapsed, cpuMicros: (cpuMicros() - cpuBefore) / decisions };
}

answerWith(run);
