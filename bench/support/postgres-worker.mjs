// A process of `npm run bench -- --topic postgres`: one candidate. It runs a load on request, and reports its decisions.
import { cpuMicros } from 'headgate-bench/cpu';
import { answerWith } from 'headgate-bench/member';
import { pseudoRandomOrder } from 'headgate-bench/order';
import { CANDIDATES } from './postgres-candidates.mjs';

const { candidate, keyCount, ...settings } = JSON.parse(process.argv[2]);
const { decide, isExpected, pool, schema } = await CANDIDATES[candidate](settings);
const accounts = Array.from({ length: keyCount }, (_, i) => `account_${i}`);
const order = pseudoRandomOrder(keyCount);
let at = 0;
const next = { spread: () => accounts[order[at++ & (order.length - 1)]], hot: () => 'account_hot' };

async function checked(account) {
  const answer = await decide(account);
  if (!isExpected(answer)) throw new Error(`${candidate}: unexpected ${JSON.stringify(answer)}`);
}

async function run({ keys, concurrency, seconds }) {
  const account = next[keys];
  let decisions = 0;
  const began = performance.now();
  const end = began + seconds * 1_000;
  const cpuBefore = cpuMicros();
  const worker = async () => {
    while (performance.now() < end) {
      await checked(account());
      decisions++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  const elapsed = (performance.now() - began) / 1_000;
  const perSecond = decisions / elapsed;
  return { decisions, perSecond, micros: 1e6 / perSecond, cpuMicros: (cpuMicros() - cpuBefore) / decisions };
}

/** Makes one decision for each account. Returns the size of the table of counters. */
async function fill(count) {
  let account = 0;
  const worker = async () => {
    while (account < count) await checked(accounts[account++]);
  };
  await Promise.all(Array.from({ length: 64 }, worker));
  const { rows } = await pool.query(
    `select pg_total_relation_size('"${schema}".counters')::float8 as bytes, count(*)::float8 as rows
     from "${schema}".counters`,
  );
  return rows[0];
}

answerWith((request) => (request.fill === undefined ? run(request) : fill(request.fill)));
