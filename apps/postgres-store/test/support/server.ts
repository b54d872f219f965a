import { startPostgres } from 'headgate-testbed/postgres-server';
import type { TestProject } from 'vitest/node';

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
