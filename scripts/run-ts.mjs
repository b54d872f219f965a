// Bundles a program of the tests, which is TypeScript, and runs it: node scripts/run-ts.mjs PROGRAM [arguments]
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const root = resolve(import.meta.dirname, '..');
const [program, ...args] = process.argv.slice(2);
/** The testbed is TypeScript too, so it goes into the bundle. */
const testbed = {
  name: 'testbed',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^headgate-testbed\// }, ({ path }) => ({
      path: join(root, `packages/testbed/src/${path.slice('headgate-testbed/'.length)}.ts`),
    })),
};
// Inside the project, so that the bundle finds the packages.
mkdirSync(join(root, 'reports'), { recursive: true });
const folder = mkdtempSync(join(root, 'reports/program-'));
try {
  const outfile = join(folder, 'main.mjs');
  await build({
    entryPoints: [resolve(program)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    plugins: [testbed],
    loader: { '.lua': 'text', '.sql': 'text' },
    sourcemap: 'inline',
    logLevel: 'warning',
  });
  const child = spawn(process.execPath, ['--enable-source-maps', outfile, ...args], { stdio: 'inherit' });
  // The program decides what Ctrl+C does: the nightly histories end with their counts so far.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGINT'));
  process.exitCode = await new Promise((ended) => child.once('exit', (code) => ended(code ?? 1)));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
