import { createLog } from '../../src/observability/log.ts';
import { madeSecrets } from './secret.ts';
import { SecretFinder } from './secret-finder.ts';

/** The log line of an error. */
export function logged(err: unknown): string {
  const lines: string[] = [];
  createLog('info', { write: (line) => void lines.push(line) }).warn({ err }, 'a call has failed');
  return lines.join('');
}

/** The secrets of this process's tests that a text contains. */
export function secretsIn(text: string): readonly string[] {
  const finder = new SecretFinder();
  for (const [index, made] of madeSecrets().entries()) finder.add(`secret ${index}`, made);
  return finder.find(text);
}
