import { defineConfig } from 'tsup';

export default defineConfig({
  entry: ['src/index.ts', 'src/routes.ts'],
  format: ['esm', 'cjs'],
  target: 'node20',
  outDir: 'dist',
  treeshake: true,
  removeNodeProtocol: false,
  dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
  silent: true,
});
