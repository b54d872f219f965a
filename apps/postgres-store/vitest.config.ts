import { projectOf, SECOND_ATTEMPT } from 'headgate-testbed/vitest-project';
import { defineConfig } from 'vitest/config';

/** Runs after the projects of the library: see the root's config. */
export const projects = [
  projectOf(import.meta.dirname, 'postgres-store', ['test/**/*.test.ts'], {
    ...SECOND_ATTEMPT,
    globalSetup: ['headgate-testbed/build', 'test/support/server.ts'],
    setupFiles: ['test/support/built.ts'],
    sequence: { groupOrder: 2 },
  }),
];

export default defineConfig({ test: { projects } });
