// Checks the site: builds it without network, checks its types, and opens it in Chromium (apps/site/test).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('../../..', import.meta.url)));

async function run(name, ...args) {
  const started = performance.now();
  const [status] = await once(spawn(process.execPath, args, { stdio: 'inherit' }), 'exit');
  if (status !== 0) throw new Error(`${name}: failed`);
  console.log(`${name}: ${((performance.now() - started) / 1_000).toFixed(1)} s`);
}

try {
  // The check of types needs the declarations of the package, and the packages of the site.
  await run('packages', 'packages/simulate/scripts/build.mjs', '--if-changed');
  await run('install', 'apps/site/scripts/build.mjs', '--install');
  // Each uses one core for most of its time.
  await Promise.all([
    run('build', 'apps/site/scripts/build.mjs', '--offline'),
    run('types', 'apps/site/node_modules/vue-tsc/bin/vue-tsc.js', '--noEmit', '-p', 'apps/site'),
  ]);
  await run('browser', 'node_modules/vitest/vitest.mjs', 'run', '--root', 'apps/site', ...process.argv.slice(2));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
