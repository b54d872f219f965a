// Builds the process into dist/, with the licences of the packages that are bundled into it, after the package that it
// bundles from this repository. With --if-changed, only what is not up to date.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { notices } from '../../../scripts/notices.mjs';
import { buildUnlessUpToDate, filesIn, replaceFolder } from '../../../scripts/up-to-date.mjs';
import { buildConsole } from './console.mjs';

process.chdir(fileURLToPath(new URL('../../..', import.meta.url)));
const APP = 'apps/gateway';
const SOURCES = [
  `${APP}/src`,
  `${APP}/scripts`,
  `${APP}/package.json`,
  `${APP}/tsup.config.ts`,
  'packages/simulate/src',
];
const TSUP = fileURLToPath(import.meta.resolve('tsup/dist/cli-default.js'));

const options = process.argv.slice(2);
const run = (args, cwd) => execFileSync(process.execPath, args, { stdio: 'inherit', cwd });

run(['packages/simulate/scripts/build.mjs', ...options]);
await buildUnlessUpToDate(
  {
    name: 'gateway',
    // The last one names the exact packages that are installed.
    inputs: () => [...SOURCES, 'node_modules/.package-lock.json'].flatMap(filesIn),
    outputs: () => filesIn(`${APP}/dist`),
    always: !options.includes('--if-changed'),
  },
  () =>
    replaceFolder(`${APP}/dist`, (folder) => {
      run([TSUP, '--out-dir', relative(APP, folder)], APP);
      writeFileSync(`${folder}/THIRD-PARTY-LICENSES.txt`, notices(folder, buildConsole().packages));
    }),
);
