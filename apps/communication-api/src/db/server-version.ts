import { sql } from 'kysely';
import { UserError } from '../domain/user-error.ts';
import type { Database } from './database.ts';

const OLDEST = 15;

/**
 * Connects to the server, and checks its version.
 * @param url is named in the error, without user and password
 * @throws UserError if the server cannot be reached or is too old
 */
export async function checkServer(db: Database, url: string): Promise<void> {
  const version = await versionOf(db, url);
  if (version < OLDEST * 10_000)
    throw new UserError(
      `DATABASE_URL: the server runs PostgreSQL ${Math.floor(version / 10_000)}. The service needs ${OLDEST} or newer.`,
      2,
    );
}

async function versionOf(db: Database, url: string): Promise<number> {
  try {
    const { rows } = await sql<{ server_version_num: string }>`show server_version_num`.execute(db);
    return Number(rows[0]?.server_version_num);
  } catch (cause) {
    const { host, pathname } = new URL(url);
    throw new UserError(`DATABASE_URL: cannot use ${host}${pathname}: ${reasonOf(cause)}`, 1, { cause });
  }
}

/** Node reports the failed attempts for several addresses of a host as one error without a message. */
function reasonOf(error: unknown): string {
  const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  return first instanceof Error ? first.message : String(first);
}
