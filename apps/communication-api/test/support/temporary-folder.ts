import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanUpLater } from './clean-up.ts';

/** A new folder, which is removed after the test file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'communication-api-'));
  cleanUpLater(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
