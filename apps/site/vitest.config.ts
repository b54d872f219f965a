import { defineConfig } from 'vitest/config';
import { packageAliases } from './build/package-aliases.ts';

/** The checks of the built site: `npm run site:check` builds it first. */
export default defineConfig({
  resolve: { alias: packageAliases },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['headgate-testbed/browser'],
    testTimeout: 180_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 10_000 } },
    maxWorkers: 2,
    maxConcurrency: 2,
  },
});
