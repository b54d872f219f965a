import { readFile } from 'node:fs/promises';
import { defineConfig, type Options } from 'tsup';
import { builtName, SUBPATHS } from './scripts/subpaths.mjs';

/** What needs Node is in one module that has a twin for everywhere else; the package's `imports` choose between them at run time. */
const platform: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'platform',
  setup(build) {
    build.onResolve({ filter: /\/platform\.ts$/ }, ({ kind }) =>
      kind === 'entry-point' ? undefined : { path: '#platform', external: true },
    );
  },
};

/**
 * Scripts in Lua, without their comments: Redis gets their text, and so does every user of the package. The SQL of the
 * schema keeps its comments, because users read it.
 */
const lua: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'lua',
  setup(build) {
    build.onLoad({ filter: /\.lua$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      return { loader: 'text', contents: text.replace(/--\[\[[\s\S]*?\]\]\n?/g, '').replace(/^[ \t]*--.*\n/gm, '') };
    });
  },
};

const library: Options = {
  format: ['esm', 'cjs'],
  target: 'node20',
  outDir: 'dist',
  treeshake: true,
  splitting: true,
  // Deno and Workers only know Node's modules with the prefix `node:`.
  removeNodeProtocol: false,
};

export default defineConfig([
  {
    ...library,
    entry: Object.fromEntries(Object.entries(SUBPATHS).map(([subpath, source]) => [builtName(subpath), source])),
    dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
    loader: { '.sql': 'text' },
    esbuildPlugins: [platform, lua],
  },
  { ...library, entry: { 'platform-node': 'src/http/platform.ts', 'platform-web': 'src/http/platform-web.ts' } },
]);
