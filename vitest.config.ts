import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globalSetup: ['test/support/build.ts'],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reportOnFailure: true,
      reporter: ['text-summary', 'json-summary', 'html'],
    },
  },
});
