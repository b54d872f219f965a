// Builds dist/ anew: a file of an earlier build would be published with it. Then adds the licences of what is bundled into it.
// With --if-changed, only if what goes into the build or what came out of it is not what it was after the last build.
// With --no-types, without declarations: enough to run it, in a third of the time. With --say, prints what it builds.
import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { notices } from './notices.mjs';
import { buildUnlessUpToDate, filesIn, replaceFolder } from './up-to-date.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
/** The last one names the exact packages that are installed. */
const INPUTS = ['src', 'scripts', 'package.json', 'tsconfig.json', 'node_modules/.package-lock.json'];
const withTypes = !process.argv.includes('--no-types');

const wasBuilt = await buildUnlessUpToDate(
  {
    name: 'build',
    inputs: () => [...readdirSync('.').filter((name) => /^tsup.*\.ts$/.test(name)), ...INPUTS.flatMap(filesIn)].sort(),
    outputs: () => filesIn('dist'),
    kinds: withTypes ? ['types'] : [],
    always: !process.argv.includes('--if-changed'),
    says: process.argv.includes('--say') ? 'Building the library …' : undefined,
  },
  () => replaceFolder('dist', build),
);
if (!wasBuilt) console.log('dist/ is up to date.');

function build(folder) {
  const options = ['--silent', '--out-dir', folder, ...(withTypes ? [] : ['--no-dts'])];
  execFileSync(process.execPath, ['node_modules/tsup/dist/cli-default.js', ...options], { stdio: 'inherit' });
  writeFileSync(`${folder}/THIRD-PARTY-LICENSES.txt`, notices(folder));
}
