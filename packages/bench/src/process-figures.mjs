import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** From here on the system counts the most memory of the process anew. Only Linux can do that. */
export function forgetPeak(pid) {
  if (process.platform === 'linux') writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** @returns the most resident memory of the process in bytes since `forgetPeak`; undefined outside Linux */
export const peakRss = (pid) => statusBytes(pid, 'VmHWM');

/** @returns the resident memory of the process in bytes now; undefined outside Linux */
export const rssOf = (pid) => statusBytes(pid, 'VmRSS');

function statusBytes(pid, field) {
  if (process.platform !== 'linux') return undefined;
  const [, kib] = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kib) * 1_024;
}

/** Memory of processes in bytes. Memory that several of them share is counted once. Only on Linux. */
export function sharedMemoryOf(pids) {
  const kib = pids.map((pid) => /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]);
  return kib.reduce((total, one) => total + Number(one) * 1_024, 0);
}

/**
 * Processor time of the main thread of a process, in milliseconds, exact to a few milliseconds. It does not grow while
 * the process waits for a core, so other work on the machine does not change it.
 * @returns undefined outside Linux
 */
export function mainThreadMs(pid) {
  if (process.platform !== 'linux') return undefined;
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ', 1)[0]) / 1e6;
}

/**
 * Processor time of processes with all their threads, in microseconds. It does not grow while they wait for a core.
 * Only on Linux.
 * @param pids processes of one candidate
 */
export function cpuMicrosOf(pids) {
  let nanoseconds = 0;
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0]);
    }
  }
  return nanoseconds / 1_000;
}

/**
 * @param pidsOf the processes of one candidate, which may start and end others meanwhile
 * @returns a function: microseconds since now, without the time of ended processes. Only on Linux.
 */
export function cpuMeter(pidsOf) {
  const before = new Map(pidsOf().map((pid) => [pid, cpuMicrosOf([pid])]));
  return () => pidsOf().reduce((sum, pid) => sum + cpuMicrosOf([pid]) - (before.get(pid) ?? 0), 0);
}

/** The process and all that it started, and so on. Only on Linux. */
export function processTree(root) {
  const children = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = parentOf(name);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** @returns undefined if the process ended */
function parentOf(pid) {
  try {
    // The name of the program, in brackets, may contain spaces.
    const [, parent] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ');
    return Number(parent);
  } catch {
    return undefined;
  }
}
