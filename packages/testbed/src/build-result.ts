import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Waits until a build ends.
 * @param result the file that exists then
 */
export async function buildHasEnded(result: string): Promise<void> {
  while (!existsSync(result)) await pause(50);
  if (readFileSync(result, 'utf8') === 'failed') throw new Error('The build failed; its output is above.');
}
