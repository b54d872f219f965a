// Strict TypeScript of every house. The library is checked by the compiler that most users have; the others by the fast one.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const FAST = 'node_modules/typescript-7/bin/tsc';
const run = (...args) => execFileSync(process.execPath, args, { stdio: 'inherit' });

// The houses read the types of the built packages.
run('packages/simulate/scripts/build.mjs', '--if-changed');
run('node_modules/typescript/bin/tsc', '--noEmit');
for (const house of [
  'packages/testbed',
  'packages/bench',
  'packages/simulate',
  'apps/gateway',
  'apps/gateway/src/console',
  'apps/communication-api',
])
  run(FAST, '--noEmit', '-p', house);
