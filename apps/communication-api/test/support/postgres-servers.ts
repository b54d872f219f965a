import type { TestProject } from 'vitest/node';
import { type PostgresServer, startPostgres } from './postgres-server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The port of a server on 127.0.0.1, and the address of its database `postgres`. */
    postgres: { readonly port: number; readonly url: string };
  }
}

/** Each project loads this module for itself; they share the server through the one process that sets it up. */
const shared = globalThis as { communicationApiPostgres?: Promise<PostgresServer> | undefined };

/** Starts a real server once before any test, and stops it after the last. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const isFirst = shared.communicationApiPostgres === undefined;
  if (isFirst) process.stdout.write('Starting PostgreSQL …\n');
  shared.communicationApiPostgres ??= startPostgres();
  const server = await shared.communicationApiPostgres;
  project.provide('postgres', { port: server.port, url: server.url() });
  if (!isFirst) return undefined;
  return async () => {
    shared.communicationApiPostgres = undefined;
    await server.stop();
  };
}
