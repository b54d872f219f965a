import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { type Database, openPool, overPool, type Pool } from '../db/database.ts';
import { type EmbeddedDatabase, openDatabase, openDataDirectory } from '../db/embedded.ts';
import { masterKeysIn } from '../db/master-key.ts';
import { checkSchema, migrate } from '../db/migrate.ts';
import { checkServer } from '../db/server-version.ts';
import { readTemplate } from '../db/template.ts';
import type { MasterKey } from '../security/envelope.ts';

/** An open database with its master keys. */
export interface Store {
  readonly db: Database;
  readonly masterKeys: readonly MasterKey[];
  /** The additions of the embedded database; undefined with DATABASE_URL. */
  readonly embedded: EmbeddedStore | undefined;
  /** The connections to the server of DATABASE_URL. */
  readonly pool: Pool | undefined;
  /** The migrations that ran. */
  readonly migrated: readonly string[];
  close(): Promise<void>;
}

export interface EmbeddedStore {
  /** The data directory, absolute. */
  readonly directory: string;
  readonly isNew: boolean;
  readonly database: EmbeddedDatabase;
}

export interface OpenOptions {
  /** Whether the schema of a server is changed; the embedded one always is. Default: `AUTO_MIGRATE`. */
  readonly mayMigrate?: boolean;
  /** Is called before an embedded database is made, with the data directory. */
  readonly onNew?: (directory: string) => void;
}

/**
 * Opens the database that the settings name, with an up-to-date schema.
 * @throws UserError
 */
export async function openStore(
  config: Config,
  log: Logger,
  { mayMigrate = config.AUTO_MIGRATE, onNew }: OpenOptions = {},
): Promise<Store> {
  return config.DATABASE_URL === undefined
    ? openEmbeddedStore(config, onNew)
    : openServerStore(config, config.DATABASE_URL, log, mayMigrate);
}

async function openServerStore(config: Config, url: string, log: Logger, mayMigrate: boolean): Promise<Store> {
  const pool = openPool(url, (error) => log.warn({ err: error }, 'connection to the database lost'));
  const db = overPool(pool);
  try {
    await checkServer(db, url);
    if (!mayMigrate) await checkSchema(db);
    const migrated = mayMigrate ? await migrate(db) : [];
    return {
      db,
      masterKeys: config.SECRET_KEYS ?? [],
      embedded: undefined,
      pool,
      migrated,
      close: () => db.destroy(),
    };
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

async function openEmbeddedStore(config: Config, onNew?: (directory: string) => void): Promise<Store> {
  const directory = await openDataDirectory(config.DATA_DIR);
  let database: EmbeddedDatabase | undefined;
  const close = async (): Promise<void> => {
    await database?.db.destroy();
    await directory.close();
  };
  try {
    const masterKeys = config.SECRET_KEYS ?? masterKeysIn(directory.path, directory.isNew);
    if (directory.isNew) onNew?.(directory.path);
    database = await openDatabase(directory, readTemplate());
    const migrated = await migrate(database.db);
    return {
      db: database.db,
      masterKeys,
      pool: undefined,
      embedded: { directory: directory.path, isNew: directory.isNew, database },
      migrated,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
