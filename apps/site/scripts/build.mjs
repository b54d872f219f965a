// Builds the site into apps/site/dist, from docs/, the API reference and the playground. It needs no network, except once
// to install what it is built with.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('../../..', import.meta.url)));

const INSTALLED = 'apps/site/node_modules/.package-lock.json';

/** Whether the packages of the site's lock file are the ones that are installed. */
function isInstalled() {
  if (!existsSync(INSTALLED)) return false;
  const installed = JSON.parse(readFileSync(INSTALLED, 'utf8')).packages;
  const locked = JSON.parse(readFileSync('apps/site/package-lock.json', 'utf8')).packages;
  // A package for another platform is in the lock only.
  return Object.entries(locked).every(
    ([place, { version, optional }]) => place === '' || optional || installed[place]?.version === version,
  );
}

/** A process without any network, if this user may make one: a build that asks for something fails there. */
function withoutNetwork(command) {
  if (!process.argv.includes('--offline')) return command;
  try {
    execFileSync('unshare', ['-rn', 'true'], { stdio: 'ignore' });
    return ['unshare', '-rn', ...command];
  } catch {
    console.log('This user may not run a process without network (unshare -rn), so the build has one.');
    return command;
  }
}

function run(name, command, options = {}) {
  const started = performance.now();
  const [program, ...args] = command;
  execFileSync(program, args, { stdio: 'inherit', ...options });
  console.log(`${name}: ${((performance.now() - started) / 1_000).toFixed(1)} s`);
}

if (!isInstalled()) run('install', ['npm', 'ci', '--prefix', 'apps/site', '--no-audit', '--no-fund']);
// The check installs first, because it uses the packages while the site is built.
if (process.argv.includes('--install')) process.exit();
run('packages', [process.execPath, 'packages/simulate/scripts/build.mjs', '--if-changed', '--no-types']);
const typedoc = 'apps/site/node_modules/typedoc/bin/typedoc';
run('API reference', withoutNetwork([process.execPath, typedoc, '--options', 'apps/site/typedoc.config.js']));
const vitepress = 'node_modules/vitepress/bin/vitepress.js';
run('pages', withoutNetwork([process.execPath, vitepress, 'build', '.']), { cwd: 'apps/site' });
