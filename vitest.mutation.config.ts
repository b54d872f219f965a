import { defineConfig } from 'vitest/config';

/** The tests that judge a mutant of the core: its own and those against the model. They need no build and no Redis. */
export default defineConfig({
  test: {
    include: [
      'test/core/**/*.test.ts',
      'test/stores/*.test.ts',
      'test/stores/memory/**/*.test.ts',
      'test/header-truth.property.test.ts',
      'test/limits/limiter.test.ts',
    ],
    testTimeout: 60_000,
    env: { HEADGATE_HISTORIES: '300' },
  },
});
