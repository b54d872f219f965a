import { NIGHTLY, projectOf } from 'headgate-testbed/vitest-project';
import { defineConfig } from 'vitest/config';

const project = projectOf(import.meta.dirname, 'bench-parts', ['test/*.test.ts']);

/** They change seldom, so a change of another house does not wait for them: the nightly run tests them. */
export const projects = NIGHTLY ? [project] : [];

export default defineConfig({ test: { projects: [project] } });
