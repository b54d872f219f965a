// Publishes the packages of this commit: a fresh build, in the order of their dependencies. With --dry-run, only shows what it would publish.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGES, packHouse, repositoryAddress } from './pack.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const options = process.argv.includes('--dry-run') ? ['--dry-run'] : [];
if (options.length === 0 && repositoryAddress() === null)
  throw new Error('package.json: repository is missing; statements of provenance and the links of the READMEs need it');
const run = (command, args) => execFileSync(command, args, { stdio: 'inherit' });

run(process.execPath, ['scripts/build.mjs']);
run(process.execPath, ['apps/gateway/scripts/build.mjs']);
for (const house of PACKAGES) {
  const { archive } = packHouse(house, join('reports', 'packages'));
  run('npm', ['publish', archive, '--access', 'public', '--provenance', ...options]);
}
