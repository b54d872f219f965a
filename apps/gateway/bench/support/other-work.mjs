import { cpus } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

const WATCH_MS = 2_000;

/**
 * Call it before a run starts anything.
 * @returns how much of the cores other work uses, from 0 to 1. With much of it, no latency means anything.
 */
export async function shareOfOtherWork() {
  const [idleBefore, allBefore] = idleAndAll();
  await wait(WATCH_MS);
  const [idle, all] = idleAndAll();
  return 1 - (idle - idleBefore) / (all - allBefore);
}

function idleAndAll() {
  const times = cpus().map((core) => core.times);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  return [sum(times.map(({ idle }) => idle)), sum(times.flatMap((one) => Object.values(one)))];
}
