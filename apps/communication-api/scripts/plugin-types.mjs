// Writes plugin.d.ts, the types for authors of plug-ins, from src/plugin.ts. A test fails if the file is not up to date.
// With a folder as argument, it writes there.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'tsup';

const target = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)));
process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const folder = mkdtempSync(join(tmpdir(), 'plugin-types-'));
try {
  await build({
    config: false,
    entry: ['src/plugin.ts'],
    format: ['esm'],
    dts: { only: true, compilerOptions: { ignoreDeprecations: '6.0' } },
    outDir: folder,
    silent: true,
  });
  copyFileSync(join(folder, 'plugin.d.ts'), join(target, 'plugin.d.ts'));
} finally {
  rmSync(folder, { recursive: true });
}
