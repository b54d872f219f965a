import { defineConfig } from 'tsup';
import gateway from './tsup.gateway.config.ts';

export default defineConfig([
  {
    entry: {
      index: 'src/index.ts',
      memory: 'src/stores/memory/index.ts',
      http: 'src/http/index.ts',
      node: 'src/adapters/node.ts',
      redis: 'src/stores/redis/index.ts',
      client: 'src/client.ts',
      testing: 'src/testing/index.ts',
    },
    format: ['esm', 'cjs'],
    target: 'node20',
    outDir: 'dist',
    dts: { compilerOptions: { ignoreDeprecations: '6.0' } },
    treeshake: true,
    // A circuit breaker for the Redis store: users install nothing for it.
    noExternal: ['cockatiel'],
    loader: { '.lua': 'text' },
  },
  gateway,
]);
