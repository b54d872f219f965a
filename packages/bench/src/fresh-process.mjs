import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A measurement that takes longer means that something hangs. */
const TIME_BOX_MS = 180_000;

/**
 * Runs one measurement in a fresh process, because an earlier one would change the heap and the type feedback.
 * @param file URL of the module that the process runs
 * @returns the JSON that the process prints
 */
export function inFreshProcess(file, args = [], nodeFlags = []) {
  const output = execFileSync(process.execPath, [...nodeFlags, fileURLToPath(file), ...args.map(String)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 26,
    timeout: TIME_BOX_MS,
  });
  return JSON.parse(output);
}
