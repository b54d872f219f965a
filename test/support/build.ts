import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file with the result of the build: see `built.ts`. */
    build: { readonly result: string };
  }
}

/**
 * Builds the package once, because the process and the package are tested as they are published. Tests of other
 * projects run in the meantime; those that need the build wait for it in `built.ts`.
 */
export function setup(project: TestProject): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-build-'));
  const result = join(folder, 'result');
  project.provide('build', { result });
  process.stdout.write('Building dist/ …\n');
  const startedAt = performance.now();
  const root = new URL('../..', import.meta.url);
  const build = spawn(process.execPath, ['scripts/build.mjs', '--if-changed'], { cwd: root, stdio: 'inherit' });
  const ended = new Promise<void>((resolve) => {
    build.on('close', (code) => {
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      process.stdout.write(code === 0 ? `dist/ is built (${seconds} s).\n` : 'The build failed.\n');
      writeFileSync(result, code === 0 ? 'built' : 'failed');
      resolve();
    });
  });
  return async () => {
    build.kill();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
}
