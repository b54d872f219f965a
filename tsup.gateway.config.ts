import { readFileSync } from 'node:fs';
import { defineConfig, type Options } from 'tsup';
import { consolePlugin } from './scripts/console.mjs';

const { version } = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8')) as { version: string };

/** The process in one file with all its dependencies, so that `npx headgate` needs nothing else. Some of them are CommonJS, so it is too. */
const gateway: Options = {
  entry: { headgate: 'src/gateway/cli/main.ts' },
  format: ['cjs'],
  target: 'node20',
  platform: 'node',
  outDir: 'dist',
  noExternal: [/.*/],
  loader: { '.lua': 'text' },
  esbuildPlugins: [consolePlugin],
  banner: { js: '#!/usr/bin/env node' },
  define: { HEADGATE_VERSION: JSON.stringify(version) },
};

export default defineConfig(gateway) as Options;
