// Bundles the program of the nightly histories, which is TypeScript, and runs it.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const root = resolve(import.meta.dirname, '../..');
// Inside the project, so that the bundle finds the packages.
mkdirSync(join(root, 'reports'), { recursive: true });
const folder = mkdtempSync(join(root, 'reports/nightly-'));
try {
  const outfile = join(folder, 'main.mjs');
  await build({
    entryPoints: [join(import.meta.dirname, 'main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    loader: { '.lua': 'text' },
    sourcemap: 'inline',
    logLevel: 'warning',
  });
  const child = spawn(process.execPath, ['--enable-source-maps', outfile, ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  // The child ends a run that is interrupted, with the counts so far.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGINT'));
  process.exitCode = await new Promise((ended) => child.once('exit', (code) => ended(code ?? 1)));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
