import { execFileSync } from 'node:child_process';

/** A measurement that takes longer means that something hangs. */
const TIME_BOX_MS = 180_000;

/**
 * Runs one measurement in a fresh process, because an earlier one would change the heap and the type feedback.
 * @returns the JSON that the process prints
 */
export function inFreshProcess(file, args = [], nodeFlags = []) {
  const path = new URL(`../${file}`, import.meta.url).pathname;
  const output = execFileSync(process.execPath, [...nodeFlags, path, ...args.map(String)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 26,
    timeout: TIME_BOX_MS,
  });
  return JSON.parse(output);
}
