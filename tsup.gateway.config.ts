import { readFileSync } from 'node:fs';
import { defineConfig, type Options } from 'tsup';

const { version } = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8')) as { version: string };

/** The process: one file with everything in it, so that `npx headgate` needs nothing else. CommonJS, since some of what it bundles is. */
const gateway: Options = {
  entry: { headgate: 'src/gateway/cli/main.ts' },
  format: ['cjs'],
  target: 'node20',
  platform: 'node',
  outDir: 'dist',
  noExternal: [/.*/],
  loader: { '.lua': 'text' },
  banner: { js: '#!/usr/bin/env node' },
  define: { HEADGATE_VERSION: JSON.stringify(version) },
};

export default defineConfig(gateway) as Options;
