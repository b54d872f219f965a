// Builds the package into dist/, after the library that its types come from. With --if-changed, only if it is not up to date. With --no-types, without declarations.
import { execFileSync } from 'node:child_process';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildUnlessUpToDate, filesIn, replaceFolder } from '../../../scripts/up-to-date.mjs';

process.chdir(fileURLToPath(new URL('../../..', import.meta.url)));
const HOUSE = 'packages/simulate';
const TSUP = fileURLToPath(import.meta.resolve('tsup/dist/cli-default.js'));
const options = process.argv.slice(2);
const withTypes = !options.includes('--no-types');
const run = (args, cwd) => execFileSync(process.execPath, args, { stdio: 'inherit', cwd });

// A build of the library that is up to date is good enough, also if this one is forced.
run(['scripts/build.mjs', '--if-changed', ...options.filter((option) => option === '--no-types')]);
await buildUnlessUpToDate(
  {
    name: 'simulate',
    inputs: () => [`${HOUSE}/src`, `${HOUSE}/package.json`, `${HOUSE}/tsup.config.ts`].flatMap(filesIn),
    outputs: () => filesIn(`${HOUSE}/dist`),
    kinds: withTypes ? ['types'] : [],
    always: !options.includes('--if-changed'),
  },
  () =>
    replaceFolder(`${HOUSE}/dist`, (folder) => {
      run([TSUP, '--out-dir', relative(HOUSE, folder), ...(withTypes ? [] : ['--no-dts'])], HOUSE);
    }),
);
