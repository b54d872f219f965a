import type { TestProject } from 'vitest/node';
import { runBuild } from './run-build.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file with the result of the build: see `built.ts`. */
    build: { readonly result: string };
  }
}

/**
 * Builds the package once, because the process and the package are tested as they are published. Tests of other
 * projects run in the meantime; tests that need the build wait for it in `built.ts`.
 */
export function setup(project: TestProject): () => Promise<void> {
  const { result, stop } = runBuild('dist/', 'scripts/build.mjs', '--if-changed');
  project.provide('build', { result });
  return stop;
}
