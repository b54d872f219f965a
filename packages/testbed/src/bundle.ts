import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';

/** Bundles a TypeScript file, by its absolute path, with all its imports, so that a child process can run it. */
export async function bundle(file: string): Promise<string> {
  const outfile = join(mkdtempSync(join(tmpdir(), 'headgate-bundle-')), 'main.cjs');
  await build({
    entryPoints: [file],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    loader: { '.lua': 'text', '.sql': 'text' },
    logLevel: 'error',
  });
  return outfile;
}
