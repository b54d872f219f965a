import { readFileSync } from 'node:fs';
import { defineConfig } from 'tsup';
import { consolePlugin } from './scripts/console.mjs';

const { version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8')) as { version: string };

/** The process in one file with all its dependencies except the library. Some of them are CommonJS, so it is too. */
export default defineConfig({
  entry: { headgate: 'src/cli/main.ts' },
  format: ['cjs'],
  target: 'node20',
  platform: 'node',
  outDir: 'dist',
  // Everything but its dependencies.
  noExternal: [/^(?!headgate(\/|$)|@opentelemetry\/api$)/],
  esbuildPlugins: [consolePlugin],
  banner: { js: '#!/usr/bin/env node' },
  define: { HEADGATE_VERSION: JSON.stringify(version) },
  silent: true,
});
