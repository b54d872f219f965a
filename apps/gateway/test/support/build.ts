import { runBuild } from 'headgate-testbed/run-build';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The file with the result of the build of the process: see `built.ts`. */
    gatewayBuild: { readonly result: string };
  }
}

/** Builds the process once, because it is tested as it is published. Files that need it wait for it in `built.ts`. */
export function setup(project: TestProject): () => Promise<void> {
  const { result, stop } = runBuild('the gateway', 'apps/gateway/scripts/build.mjs', '--if-changed');
  project.provide('gatewayBuild', { result });
  return stop;
}
