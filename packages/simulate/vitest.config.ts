import { projectOf, SECOND_ATTEMPT } from 'headgate-testbed/vitest-project';
import { defineConfig } from 'vitest/config';

/** It uses the built library, and its own package is tested as it is published. The report is looked at in Chromium. */
export const projects = [
  projectOf(import.meta.dirname, 'simulate', ['test/**/*.test.ts'], {
    ...SECOND_ATTEMPT,
    globalSetup: ['headgate-testbed/build', 'test/support/build.ts', 'headgate-testbed/browser'],
    setupFiles: ['test/support/built.ts'],
  }),
];

export default defineConfig({ test: { projects } });
