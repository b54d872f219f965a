// Every test, with the coverage of the library, then random histories: node scripts/nightly.mjs [flags of the histories]
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const env = { ...process.env, HEADGATE_NIGHTLY: '1' };
const run = (...args) => spawnSync(process.execPath, args, { stdio: 'inherit', env }).status ?? 1;

const tests = run('node_modules/vitest/vitest.mjs', 'run', '--coverage');
// The histories run also if a test has failed: a night shows as much as it can.
const histories = run('scripts/run-ts.mjs', 'test/nightly/main.ts', ...process.argv.slice(2));
process.exitCode = tests || histories;
