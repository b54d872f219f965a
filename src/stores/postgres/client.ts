import { OptionError } from '../../base/errors.ts';
import type { Database } from './database.ts';
import { fromPg, type PgPool } from './pg.ts';
import { fromPglite, type PgliteDatabase } from './pglite.ts';
import { fromPostgresJs, type PostgresJsSql } from './postgres-js.ts';

/**
 * `Pool` of pg 8, `sql` of postgres 3, or a PGlite database. The stores never connect, configure or close it.
 */
export type PostgresClient = PgPool | PostgresJsSql | PgliteDatabase;

const EXPECTED = 'must be a Pool of pg, an sql function of postgres, or a PGlite database';

/**
 * Detects the client by its members, because the name of its class changes in a minified build and in a subclass.
 * @param option the name of the client in the error
 * @throws OptionError
 */
export function databaseOf(option: string, client: PostgresClient): Database {
  if (hasMembers(client, ['connect', 'query'], ['totalCount', 'waitingCount'])) return fromPg(client as PgPool);
  if (hasMembers(client, ['unsafe', 'begin'], ['options'])) return fromPostgresJs(client as PostgresJsSql);
  if (hasMembers(client, ['query', 'exec', 'transaction'], ['closed'])) return fromPglite(client as PgliteDatabase);
  throw new OptionError(option, client, EXPECTED, another(client));
}

/** The error text about another object that is likely to be passed; undefined if it is unknown. */
function another(client: unknown): string | undefined {
  if (hasMembers(client, ['execute', 'select', 'transaction'])) return 'a Drizzle database: pass its $client';
  if (hasMembers(client, ['selectFrom', 'executeQuery'])) return 'a Kysely database: pass the pool of its dialect';
  if (hasMembers(client, ['$queryRawUnsafe'])) return 'a Prisma client: pass a Pool of pg beside it';
  if (hasMembers(client, ['createQueryRunner'])) return 'a TypeORM data source: pass a Pool of pg beside it';
  if (hasMembers(client, ['raw', 'client'])) return 'a Knex instance: pass a Pool of pg beside it';
  if (hasMembers(client, ['unsafe']) || hasMembers(client, ['query', 'rollback'])) return 'an open transaction';
  if (hasMembers(client, ['query', 'release'])) return 'one connection of a pool: pass the pool';
  if (hasMembers(client, ['query', 'connect'])) return 'a Client of pg, which is one connection: pass a Pool';
  return undefined;
}

function hasMembers(client: unknown, methods: readonly string[], others: readonly string[] = []): boolean {
  const isObject = (typeof client === 'object' && client !== null) || typeof client === 'function';
  if (!isObject) return false;
  const members = client as Readonly<Record<string, unknown>>;
  return methods.every((name) => typeof members[name] === 'function') && others.every((name) => name in client);
}
