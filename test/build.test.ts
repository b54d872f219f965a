import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';

const SCRIPT = JSON.stringify(new URL('../scripts/up-to-date.mjs', import.meta.url).href);
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-build-'));
  mkdirSync(join(folder, 'dist'));
  writeFileSync(join(folder, 'dist/main.js'), 'old');
  return () => rmSync(folder, { recursive: true });
});

/** Runs a program in the folder. */
const run = (code: string): string =>
  execFileSync(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { writeFileSync, mkdirSync } from 'node:fs';
       import { buildUnlessUpToDate, filesIn, replaceFolder } from ${SCRIPT};
       const build = (always) => buildUnlessUpToDate(
         { name: 'x', inputs: () => [], outputs: () => filesIn('dist'), always },
         () => replaceFolder('dist', (fresh) => { mkdirSync(fresh); writeFileSync(fresh + '/main.js', 'new'); }));
       ${code}`,
    ],
    { cwd: folder, encoding: 'utf8' },
  ).trim();

const built = () => readFileSync(join(folder, 'dist/main.js'), 'utf8');

test('an installation without the packages for development keeps what was built, as npm start does', () => {
  expect(run('console.log(await build(false))')).toBe('false');
  expect(built()).toBe('old');
  mkdirSync(join(folder, 'node_modules/tsup'), { recursive: true });
  expect(run('console.log(await build(false), await build(false), await build(true))')).toBe('true false true');
  expect(built()).toBe('new');
});

test('a build that fails keeps what was built before', () => {
  const failing = `try { replaceFolder('dist', (fresh) => { mkdirSync(fresh); throw new Error('no'); }); } catch { console.log('failed'); }`;
  expect(run(failing)).toBe('failed');
  expect(built()).toBe('old');
  run('await build(true)');
  expect([existsSync(join(folder, 'dist.new')), existsSync(join(folder, 'dist.old')), built()]).toEqual([
    false,
    false,
    'new',
  ]);
});
