// Builds the package into dist/. With --if-changed, only if it is not up to date. With --no-types, without declarations.
import { execFileSync } from 'node:child_process';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildUnlessUpToDate, filesIn, replaceFolder } from '../../../scripts/up-to-date.mjs';

process.chdir(fileURLToPath(new URL('../../..', import.meta.url)));
const HOUSE = 'packages/simulate';
const TSUP = fileURLToPath(import.meta.resolve('tsup/dist/cli-default.js'));
const withTypes = !process.argv.includes('--no-types');

await buildUnlessUpToDate(
  {
    name: 'simulate',
    inputs: () => [`${HOUSE}/src`, `${HOUSE}/package.json`, `${HOUSE}/tsup.config.ts`].flatMap(filesIn),
    outputs: () => filesIn(`${HOUSE}/dist`),
    kinds: withTypes ? ['types'] : [],
    always: !process.argv.includes('--if-changed'),
  },
  () =>
    replaceFolder(`${HOUSE}/dist`, (folder) => {
      const options = ['--out-dir', relative(HOUSE, folder), ...(withTypes ? [] : ['--no-dts'])];
      execFileSync(process.execPath, [TSUP, ...options], { stdio: 'inherit', cwd: HOUSE });
    }),
);
