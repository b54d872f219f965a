import { defineConfig, type Options } from 'tsup';
import gateway from './tsup.gateway.config.ts';

/** Of what takes something from Node, the package's `imports` choose: one file for Node, one for everywhere else. */
const platform: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'platform',
  setup(build) {
    build.onResolve({ filter: /\/platform\.ts$/ }, ({ kind }) =>
      kind === 'entry-point' ? undefined : { path: '#platform', external: true },
    );
  },
};

const library: Options = {
  format: ['esm', 'cjs'],
  target: 'node20',
  outDir: 'dist',
  treeshake: true,
  // Deno and Workers know Node's modules by their full names only.
  removeNodeProtocol: false,
};

export default defineConfig([
  {
    ...library,
    entry: {
      index: 'src/index.ts',
      stores: 'src/stores/index.ts',
      recommended: 'src/limits/recommended.ts',
      memory: 'src/stores/memory/index.ts',
      http: 'src/http/index.ts',
      node: 'src/adapters/node.ts',
      express: 'src/adapters/express.ts',
      fastify: 'src/adapters/fastify.ts',
      koa: 'src/adapters/koa.ts',
      nest: 'src/adapters/nest.ts',
      redis: 'src/stores/redis/index.ts',
      'client-ip': 'src/client-ip.ts',
      fetch: 'src/adapters/fetch.ts',
      hono: 'src/adapters/hono.ts',
      h3: 'src/adapters/h3.ts',
      elysia: 'src/adapters/elysia.ts',
      client: 'src/client/fetch-with-retry.ts',
      testing: 'src/testing/index.ts',
    },
    dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
    esbuildPlugins: [platform],
    // A circuit breaker for the Redis store: users install nothing for it.
    noExternal: ['cockatiel'],
    loader: { '.lua': 'text' },
  },
  { ...library, entry: { 'platform-node': 'src/http/platform.ts', 'platform-web': 'src/http/platform-web.ts' } },
  gateway,
]);
