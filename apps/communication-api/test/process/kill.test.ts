import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { expect, test } from 'vitest';
import { openDatabase, openDataDirectory } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { readTemplate } from '../../src/db/template.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROUNDS = NIGHTLY ? 4 : 1;
const folder = join(temporaryFolder(), 'data');
// Inside node_modules, so that the program finds the packages.
const modules = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../..');
const program = join(modules, '.cache/headgate/write-loop.mjs');

test('kill -9 in the middle of writes loses nothing that was stored, and the next process takes over the directory', async () => {
  await build({
    entryPoints: [fileURLToPath(new URL('../support/write-loop.ts', import.meta.url))],
    outfile: program,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
  const stored = async (): Promise<Set<string>> => {
    const directory = await openDataDirectory(folder);
    const { db } = await openDatabase(directory, readTemplate());
    await migrate(db);
    const rows = await db.selectFrom('applications').select('id').execute();
    await db.destroy();
    await directory.close();
    return new Set(rows.map(({ id }) => id));
  };
  await stored();
  const acknowledged: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = acknowledged.length;
    const child = spawn(process.execPath, ['--liftoff-only', program, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    await new Promise((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (text.length > 3_000 * (round + 1)) child.kill('SIGKILL');
      });
      child.on('close', resolve);
    });
    // The last line may be cut off.
    acknowledged.push(...text.split('\n').slice(0, -1));
    expect(acknowledged.length).toBeGreaterThan(before + 50);
    const kept = await stored();
    expect(acknowledged.filter((id) => !kept.has(id))).toEqual([]);
  }
});
