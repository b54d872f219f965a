import { existsSync, readFileSync } from 'node:fs';

const OF_THREAD = '/proc/thread-self/schedstat';

/** @returns the processor time of this process from now on, in milliseconds. Other programs lengthen a time, but not this. */
export function startCpuTimer(): () => number {
  const start = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000;
  };
}

/**
 * @returns the processor time of this thread alone from now on, in milliseconds. On a busy machine, the threads that
 *   collect garbage and compile run while this thread waits, so their time does not show how long this thread keeps
 *   others waiting.
 */
export function startThreadTimer(): () => number {
  // Only Linux shows it.
  if (!existsSync(OF_THREAD)) return startCpuTimer();
  const start = threadMs();
  return () => threadMs() - start;
}

function threadMs(): number {
  // The kernel updates the thread's figure when it is asked for the process's figure.
  process.cpuUsage();
  return Number(readFileSync(OF_THREAD, 'latin1').split(' ')[0]) / 1e6;
}
