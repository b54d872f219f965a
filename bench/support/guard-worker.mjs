// A process of `npm run bench -- --topic guard`: one workload on one build of headgate. Prints the CPU nanoseconds per call as
// JSON. With a number of calls as its third argument it makes exactly that many calls and prints nothing; a tool counts
// instructions.
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { cpuMicros } from 'headgate-bench/cpu';
import { GUARDED } from './guard-workloads.mjs';

const [, , dist, workload, calls] = process.argv;
const WARM_UP_MS = 250;
const MEASURED_MS = 250;
const BATCH = 200;

const load = (name) => import(pathToFileURL(resolve(join(dist, `${name}.js`))).href);
const call = await GUARDED[workload](load);

async function batch(amount) {
  for (let i = 0; i < amount; i++) {
    const answer = call();
    if (answer instanceof Promise) await answer;
  }
}

const cpuMs = () => cpuMicros() / 1_000;

async function spend(ms) {
  const began = cpuMs();
  let done = 0;
  for (; cpuMs() < began + ms; done += BATCH) await batch(BATCH);
  return { done, spentMs: cpuMs() - began };
}

if (calls !== undefined) {
  await batch(Number(calls));
} else {
  await spend(WARM_UP_MS);
  const { done, spentMs } = await spend(MEASURED_MS);
  console.log(JSON.stringify({ cost: (spentMs * 1e6) / done }));
}
process.exit();
