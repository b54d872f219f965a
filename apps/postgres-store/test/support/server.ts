import type { TestProject } from 'vitest/node';
import { startPostgres } from '../../../communication-api/test/support/postgres-server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The address of a PostgreSQL server that all test files share. */
    postgresStore: { readonly url: string };
  }
}

/** Starts a real server once before any test, and stops it after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres();
  project.provide('postgresStore', { url: server.url() });
  return () => server.stop();
}
