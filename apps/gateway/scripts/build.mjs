// Builds the process into dist/, with the licences of what is bundled into it. With --if-changed, only if it is not up to date.
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

await buildUnlessUpToDate(
  {
    name: 'gateway',
    // The last one names the exact packages that are installed.
    inputs: () => [...SOURCES, 'node_modules/.package-lock.json'].flatMap(filesIn),
    outputs: () => filesIn(`${APP}/dist`),
    always: !process.argv.includes('--if-changed'),
  },
  () =>
    replaceFolder(`${APP}/dist`, (folder) => {
      execFileSync(process.execPath, [TSUP, '--out-dir', relative(APP, folder)], { stdio: 'inherit', cwd: APP });
      writeFileSync(`${folder}/THIRD-PARTY-LICENSES.txt`, notices(folder, buildConsole().packages));
    }),
);
