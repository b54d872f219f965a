// A process of `npm run bench:redis`: one candidate on one client, loaded when told to. Tells what it did and what CPU it took.

import { answerWith } from './member.mjs';
import { pseudoRandomOrder } from './order.mjs';
import { CANDIDATES } from './redis-candidates.mjs';
import { CLIENTS } from './redis-clients.mjs';

const { client, candidate, port, keyCount, against } = JSON.parse(process.argv[2]);
/** How often the time is looked at: it would cost as much as a local rejection. */
const LOOK_EVERY = 64;

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
    const made = await CANDIDATES[candidate](connection, { denied, against });
    if (denied) await made.decide(next.denied());
    subjects.set(denied, made);
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
  const cpuBefore = process.cpuUsage();
  const worker = async () => {
    while (!ended) {
      const answer = await decide(account());
      if (!isExpected(answer))
        throw new Error(`${candidate} on ${client}, ${keys}: unexpected ${JSON.stringify(answer)}`);
      if (++decisions % LOOK_EVERY === 0) ended = performance.now() >= end;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const elapsed = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { decisions, perSecond: decisions / elapsed, cpuMicros: (user + system) / decisions };
}

answerWith(run);
