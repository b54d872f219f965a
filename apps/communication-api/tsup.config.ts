import { defineConfig } from 'tsup';

export default defineConfig({
  entry: ['src/main.ts', 'src/build-template.ts'],
  format: ['esm'],
  target: 'node20',
  outDir: 'dist',
  sourcemap: true,
  silent: true,
});
