import { runBuild } from 'headgate-testbed/run-build';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file with the result of the build of the service: see `built.ts`. */
    serviceBuild: { readonly result: string };
  }
}

/** Builds the service, and the template that makes embedded databases start fast, once. Test files wait for it in `built.ts`. */
export function setup(project: TestProject): () => Promise<void> {
  const { result, stop } = runBuild('the service', 'apps/communication-api/scripts/build.mjs', '--if-changed');
  project.provide('serviceBuild', { result });
  return stop;
}
