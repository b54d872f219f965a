// Checks the site: builds it without network, checks its types, and opens it in Chromium (site/test).
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('../..', import.meta.url)));

const run = (...args) => execFileSync(process.execPath, args, { stdio: 'inherit' });

// The check of types needs the declarations of the package.
run('scripts/build.mjs', '--if-changed');
run('site/scripts/build.mjs', '--offline');
run('site/node_modules/vue-tsc/bin/vue-tsc.js', '--noEmit', '-p', 'site');
run('node_modules/vitest/vitest.mjs', 'run', '--root', 'site', ...process.argv.slice(2));
