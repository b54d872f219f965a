import { type Migration, Migrator, sql } from 'kysely';
import { UserError } from '../domain/user-error.ts';
import type { Database } from './database.ts';
import * as first from './migrations/0001-first.ts';
import * as events from './migrations/0002-events.ts';
import * as domains from './migrations/0003-domains.ts';
import * as sentCopies from './migrations/0004-sent-copies.ts';
import * as accounts from './migrations/0005-accounts.ts';
import * as sendsWithoutIds from './migrations/0007-sends-without-ids.ts';
import * as people from './migrations/0008-people.ts';
import * as instanceRoles from './migrations/0009-instance-roles.ts';
import * as dashboard from './migrations/0010-dashboard.ts';
import * as failedConversations from './migrations/0011-failed-conversations.ts';
import * as secondFactor from './migrations/0012-second-factor.ts';
import * as claims from './migrations/0013-claims.ts';
import * as sharedLimits from './migrations/0014-shared-limits.ts';
import * as slots from './migrations/0015-slots.ts';

/** In the order in which they run. A migration that was released is never changed: the next one changes its result. */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001-first': first,
  '0002-events': events,
  '0003-domains': domains,
  '0004-sent-copies': sentCopies,
  '0005-accounts': accounts,
  '0007-sends-without-ids': sendsWithoutIds,
  '0008-people': people,
  '0009-instance-roles': instanceRoles,
  '0010-dashboard': dashboard,
  '0011-failed-conversations': failedConversations,
  '0012-second-factor': secondFactor,
  '0013-claims': claims,
  '0014-shared-limits': sharedLimits,
  '0015-slots': slots,
};
export const MIGRATION_NAMES: readonly string[] = Object.keys(MIGRATIONS);
const TABLE = 'migrations';

/**
 * Brings the schema up to date. Processes that start at the same time wait for each other.
 * @returns the names of the migrations that ran
 * @throws UserError if a newer version of the service already migrated the schema
 */
export async function migrate(db: Database): Promise<readonly string[]> {
  // The migrator reads the catalog of all tables several times, which is most of a start on the embedded database.
  if (missingIn(await knownMigrationsOf(db)).length === 0) return [];
  const { error, results = [] } = await migratorOf(db).migrateToLatest();
  if (error !== undefined) throw error;
  return results.map(({ migrationName }) => migrationName);
}

/** The schema is older than this version of the service. */
export class OldSchemaError extends UserError {
  override readonly name = 'OldSchemaError';

  /** @param finding as part of a sentence */
  constructor(readonly finding: string) {
    super(`DATABASE_URL: ${finding}. Run the command "migrate", or set AUTO_MIGRATE=true.`, 2);
  }
}

/**
 * Checks that no migration is missing.
 * @throws UserError if one is, or if the schema is newer than this version of the service
 */
export async function checkSchema(db: Database): Promise<void> {
  const missing = missingIn(await knownMigrationsOf(db));
  if (missing.length > 0)
    throw new OldSchemaError(`the schema lacks ${missing.length} of ${MIGRATION_NAMES.length} migrations`);
}

/**
 * Whether all migrations of this version ran. Migrations of a newer version do not matter: both versions work with its
 * schema while one replaces the other.
 */
export const hasCurrentSchema = async (db: Database): Promise<boolean> =>
  missingIn(await migrationsOf(db)).length === 0;

const migratorOf = (db: Database): Migrator =>
  new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...MIGRATIONS }) },
    migrationTableName: TABLE,
    migrationLockTableName: 'migrations_lock',
  });

const missingIn = (done: readonly string[]): readonly string[] =>
  MIGRATION_NAMES.filter((name) => !done.includes(name));

/** The migrations that ran. */
async function migrationsOf(db: Database): Promise<readonly string[]> {
  const rows = await db.withTables<{ [TABLE]: { name: string } }>().selectFrom(TABLE).select('name').execute();
  return rows.map(({ name }) => name);
}

/**
 * The migrations that ran; none in an empty database.
 * @throws UserError if a newer version of the service ran another migration
 */
async function knownMigrationsOf(db: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ readonly exists: boolean }>`select to_regclass(${TABLE}) is not null as exists`.execute(
    db,
  );
  const done = rows[0]?.exists === true ? await migrationsOf(db) : [];
  const unknown = done.filter((name) => !Object.hasOwn(MIGRATIONS, name));
  if (unknown.length > 0)
    throw new UserError(
      `The database was migrated by a newer version of the service: this version does not know ${unknown.toSorted().join(', ')}. Start the newer version.`,
      2,
    );
  return done;
}
