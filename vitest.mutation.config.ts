import { defineConfig } from 'vitest/config';

/** What judges a mutant of the core: its own tests and the model's, without a build and without Redis, since no mutant is built. */
export default defineConfig({
  test: {
    include: [
      'test/core/**/*.test.ts',
      'test/stores/*.test.ts',
      'test/stores/memory/**/*.test.ts',
      'test/header-truth.property.test.ts',
      'test/limiter.test.ts',
    ],
    testTimeout: 60_000,
    env: { HEADGATE_HISTORIES: '300' },
  },
});
