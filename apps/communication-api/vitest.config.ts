import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    name: 'service',
    include: ['test/**/*.test.{ts,tsx}'],
    exclude: [...configDefaults.exclude],
    globalSetup: ['test/support/postgres-servers.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
