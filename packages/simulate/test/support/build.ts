import { runBuild } from 'headgate-testbed/run-build';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file with the result of the build of the package: see `built.ts`. */
    simulateBuild: { readonly result: string };
  }
}

/** Builds the package once. Files that need it wait for it in `built.ts`. */
export function setup(project: TestProject): () => Promise<void> {
  const { result, stop } = runBuild('simulate', 'packages/simulate/scripts/build.mjs', '--if-changed');
  project.provide('simulateBuild', { result });
  return stop;
}
