// A process of the topic bodies: reads one hostile body, as an adapter does: the field account_id and the fingerprint.
// Prints JSON: milliseconds of CPU, and the longest time between two turns of the event loop. Its arguments: the title
// of the body, and how often it is read first.
import { fieldOfBody } from 'headgate/fetch';
import { fingerprint } from 'headgate/http';
import { cpuMicros } from 'headgate-bench/cpu';
import { HOSTILE_BODIES, HOSTILE_QUERIES } from './hostile-bodies.mjs';

const [, , title, warmUps] = process.argv;
const query = HOSTILE_QUERIES[title];
const { type, body } =
  query === undefined
    ? HOSTILE_BODIES[title]()
    : { type: 'application/x-www-form-urlencoded', body: Buffer.from(query) };

async function* chunks() {
  yield body;
}

/** A refusal is an answer as well. */
const orRefused = (work) => work.catch(({ reason }) => reason);

async function read() {
  const headers = { 'content-type': type };
  const request = new Request('http://h/', { method: 'POST', body, headers });
  const field = await orRefused(fieldOfBody(request, 'account_id', { maxBytes: 2 * body.length }));
  // Only the field of a query is read.
  if (query === undefined)
    await orRefused(fingerprint({ method: 'POST', path: '/', contentType: type, body: chunks() }));
  return field;
}

/** The longest time between two turns of the event loop. */
async function stallOf(work) {
  let isOver = false;
  let longest = 0;
  let last = performance.now();
  const turn = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  turn();
  isOver = true;
  return longest;
}

for (let i = 0; i < Number(warmUps); i++) await read();
/** A query is so short that its time is measured over many. */
const times = query === undefined ? 1 : 100;
const began = cpuMicros();
let outcome;
for (let i = 0; i < times; i++) outcome = await read();
const cpuMs = (cpuMicros() - began) / 1_000 / times;
const stallMs = await stallOf(read);
console.log(JSON.stringify({ cpuMs, megabytes: body.length / 1e6, stallMs, outcome }));
