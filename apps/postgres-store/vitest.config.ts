import { defineConfig } from 'vitest/config';

/** Runs after the projects of the library: see the root's config. */
export const projects = [
  {
    // Relative paths are this folder's, also when the root's config has this project.
    root: import.meta.dirname,
    test: {
      name: 'postgres-store',
      include: ['test/**/*.test.ts'],
      globalSetup: ['headgate-testbed/build', 'test/support/server.ts'],
      setupFiles: ['test/support/built.ts'],
      testTimeout: 120_000,
      hookTimeout: 120_000,
      // A busy machine may take longer than the default of one second.
      expect: { poll: { timeout: 10_000 } },
      isolate: false,
      sequence: { groupOrder: 2 },
    },
  },
];

export default defineConfig({ test: { projects } });
