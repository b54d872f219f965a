// A preload for a process under test: at SIGUSR2 it prints the longest turn of its event loop since the last signal. Only
// the processor time of the thread counts, so that other programs on the machine do not lengthen it.
import { existsSync, readFileSync } from 'node:fs';

const OF_THREAD = '/proc/thread-self/schedstat';

function threadMs() {
  // The kernel updates the thread's figure when it is asked for the process's figure.
  const { user, system } = process.cpuUsage();
  return existsSync(OF_THREAD) ? Number(readFileSync(OF_THREAD, 'latin1').split(' ')[0]) / 1e6 : (user + system) / 1e3;
}

let start = threadMs();
let longest = 0;

function measure() {
  const end = threadMs();
  longest = Math.max(longest, end - start);
  start = end;
  setImmediate(measure).unref();
}
measure();
// The loop turns also if nothing happens.
setInterval(() => undefined, 1).unref();
process.on('SIGUSR2', () => {
  process.stdout.write(`longest turn: ${Math.ceil(longest)} ms\n`);
  longest = 0;
});
