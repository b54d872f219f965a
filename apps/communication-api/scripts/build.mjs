// Builds the service into dist/, and the template of its embedded database.
// With --if-changed, only what is not up to date. With --no-template, without the template: then the first start is slower.
// With --say, prints what it builds.
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync } from 'node:fs';
import { basename, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildUnlessUpToDate, filesIn, replaceFolder } from '../../../scripts/up-to-date.mjs';

process.chdir(fileURLToPath(new URL('../../..', import.meta.url)));
const APP = 'apps/communication-api';
const TEMPLATE = `${APP}/dist/template.tar.gz`;
const always = !process.argv.includes('--if-changed');
const says = (text) => (process.argv.includes('--say') ? text : undefined);
/** The last one names the exact packages that are installed. */
const SETTINGS = [`${APP}/package.json`, `${APP}/tsup.config.ts`, 'node_modules/.package-lock.json'];

const run = (args, cwd) => execFileSync(process.execPath, args, { stdio: 'inherit', cwd });

await buildUnlessUpToDate(
  {
    name: 'communication-api',
    inputs: () => [`${APP}/src`, ...SETTINGS].flatMap(filesIn),
    outputs: () => filesIn(`${APP}/dist`).filter((file) => file !== TEMPLATE),
    always,
    says: says('Building the service …'),
  },
  () =>
    replaceFolder(`${APP}/dist`, (folder) => {
      run([fileURLToPath(import.meta.resolve('tsup/dist/cli-default.js')), '--out-dir', relative(APP, folder)], APP);
      if (existsSync(TEMPLATE)) copyFileSync(TEMPLATE, `${folder}/${basename(TEMPLATE)}`);
    }),
);

if (!process.argv.includes('--no-template'))
  await buildUnlessUpToDate(
    {
      name: 'communication-api-template',
      inputs: () => [`${APP}/src/db`, ...SETTINGS].flatMap(filesIn),
      outputs: () => filesIn(TEMPLATE),
      always,
      says: says('Making the template of the embedded database …'),
    },
    () => run([`${APP}/dist/build-template.js`, TEMPLATE]),
  );
