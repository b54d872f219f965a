import { projectOf } from 'headgate-testbed/vitest-project';
import { defineConfig } from 'vitest/config';

/** The library that it uses is the built one. The report is looked at in Chromium. */
export const projects = [
  projectOf(import.meta.dirname, 'simulate', ['test/**/*.test.ts'], {
    globalSetup: ['headgate-testbed/build', 'headgate-testbed/browser'],
    setupFiles: ['headgate-testbed/built'],
  }),
];

export default defineConfig({ test: { projects } });
