import type { TestProject } from 'vitest/node';
import { startPostgres } from './postgres-server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The address of a PostgreSQL server that all test files of the run share. */
    postgres: { readonly url: string };
  }
}

/** Starts one real server before any test of the project, and stops it after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres();
  project.provide('postgres', { url: server.url() });
  return () => server.stop();
}
