// A process of `npm run bench -- --topic idempotency`: one candidate in memory or on one client. It reports its calls and its CPU
// time.

import { cpuMicros } from 'headgate-bench/cpu';
import { answerWith } from 'headgate-bench/member';
import { pseudoRandomOrder } from 'headgate-bench/order';
import { CANDIDATES } from './idempotency-candidates.mjs';
import { CLIENTS } from './idempotency-clients.mjs';

const { client, candidate, port, keyCount, against } = JSON.parse(process.argv[2]);
/** The clock is read once per this many calls. */
const READ_CLOCK_EVERY = 64;

const connection = await CLIENTS[client](port);
const order = pseudoRandomOrder(keyCount);
const RESULT = { id: 'msg_01HZX3K9V6', status: 'queued' };
let executions = 0;
const operation = async () => {
  executions++;
  return RESULT;
};
const make = () => CANDIDATES[candidate](connection, against);

/** An email as JSON of about the given length. Every body has another recipient, as real requests have. */
function bodyOf(i, length) {
  const object = {
    to: `customer-${i}@example.com`,
    from: 'billing@shop.example',
    subject: 'Your receipt',
    account_id: `acc_${i % 100}`,
    tags: ['receipt', 'q3'],
    html: '<p>Thank you for your order. Your receipt is below.</p>'.repeat(
      Math.max(1, Math.round((length - 180) / 55)),
    ),
  };
  return { object, text: JSON.stringify(object) };
}
const bodies = new Map();
function bodiesOf(length) {
  if (!bodies.has(length))
    bodies.set(
      length,
      Array.from({ length: 512 }, (_, i) => bodyOf(i, length)),
    );
  return bodies.get(length);
}

let keysMade = 0;
let call;
let kept = [];

/** Fills the store with `keyCount` outcomes for replays. First calls need none, because every call has a new key. */
async function prepare({ kind, length }) {
  if (call === undefined || connection === undefined) call = await make();
  const all = bodiesOf(length);
  kept = [];
  if (kind === 'replay') {
    for (let i = 0; i < keyCount; i++) kept.push({ key: `${client}-key-${keysMade++}`, body: all[i % all.length] });
    await inTurns(kept.values(), 64, ({ key, body }) => call(key, body, operation, false));
  }
  return { ready: true };
}

async function inTurns(jobs, concurrency, run) {
  const worker = async () => {
    for (const job of jobs) await run(job);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

async function run({ kind, length, concurrency, seconds }) {
  const isReplay = kind === 'replay';
  const all = bodiesOf(length);
  const executedBefore = executions;
  let calls = 0;
  let restarted = 0;
  let ended = false;
  let at = 0;
  const began = performance.now();
  const end = began + seconds * 1_000;
  const cpuBefore = cpuMicros();
  const worker = async () => {
    while (!ended) {
      const chosen = isReplay ? kept[order[at++ & (order.length - 1)]] : undefined;
      const key = chosen?.key ?? `${client}-key-${keysMade++}`;
      const value = await call(key, chosen?.body ?? all[keysMade % all.length], operation, isReplay);
      if (value?.id !== RESULT.id)
        throw new Error(`${candidate} on ${client}, ${kind}: unexpected ${JSON.stringify(value)}`);
      if (++calls % READ_CLOCK_EVERY === 0) ended = performance.now() >= end;
      // A store in memory is replaced when it has as many keys as for replays. One that grew for ever would measure its
      // own growth.
      if (connection === undefined && !isReplay && calls % keyCount === 0) {
        const pause = performance.now();
        call = await make();
        restarted += performance.now() - pause;
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const elapsed = (performance.now() - began - restarted) / 1_000;
  const cpu = cpuMicros() - cpuBefore;
  if (executions - executedBefore !== (isReplay ? 0 : calls))
    throw new Error(`${candidate} on ${client}, ${kind}: ${executions - executedBefore} executions in ${calls} calls`);
  return { calls, perSecond: calls / elapsed, cpuMicros: cpu / calls };
}

answerWith(({ step, ...workload }) => (step === 'prepare' ? prepare : run)(workload));
