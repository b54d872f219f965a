// Writes apps/gateway/docs/config.schema.json from the zod schema of the config; with --check only says whether it is up to date.
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const target = path('../docs/config.schema.json');
const folder = await mkdtemp(join(tmpdir(), 'headgate-schema-'));
try {
  const outfile = join(folder, 'schema.mjs');
  const entryPoints = [path('../src/config/schema.ts')];
  await build({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm', target: 'node20' });
  const { jsonSchema } = await import(pathToFileURL(outfile).href);
  if (!process.argv.includes('--check')) writeFileSync(target, jsonSchema());
  else if (readFileSync(target, 'utf8') !== jsonSchema()) {
    console.error('apps/gateway/docs/config.schema.json is out of date: npm run schema');
    process.exitCode = 1;
  }
} finally {
  await rm(folder, { recursive: true });
}
