import { readFileSync, writeFileSync } from 'node:fs';

/** From here on the system counts the most memory of the process anew. Only Linux can do that. */
export function forgetPeak(pid) {
  if (process.platform === 'linux') writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** @returns the most resident memory of the process in bytes since `forgetPeak`; undefined outside Linux */
export function peakRss(pid) {
  if (process.platform !== 'linux') return undefined;
  const [, kib] = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kib) * 1_024;
}

/**
 * Processor time that the main thread of a process has used, in milliseconds, exact to a few milliseconds. It does not
 * grow while the process waits for a core, so other work on the machine does not change it.
 * @returns undefined outside Linux
 */
export function mainThreadMs(pid) {
  if (process.platform !== 'linux') return undefined;
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ', 1)[0]) / 1e6;
}
