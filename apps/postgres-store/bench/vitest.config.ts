import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['*.bench.ts'],
    globalSetup: ['headgate-testbed/build'],
    setupFiles: ['../test/support/built.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
