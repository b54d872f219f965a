import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [
    {
      name: 'lua-as-text',
      enforce: 'pre',
      load: (id) => (id.endsWith('.lua') ? `export default ${JSON.stringify(readFileSync(id, 'utf8'))}` : undefined),
    },
  ],
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globalSetup: ['test/support/build.ts', 'test/support/redis-servers.ts'],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reportOnFailure: true,
      thresholds: { branches: 90, lines: 90, 'src/core/**': { branches: 100, lines: 100 } },
      reporter: ['text-summary', 'json-summary', 'html'],
    },
  },
});
