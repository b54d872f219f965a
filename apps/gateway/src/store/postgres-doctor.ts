import type { Pool } from 'pg';
import type { Config } from '../config/schema.ts';
import type { PostgresStore } from '../config/store-url.ts';
import { storeProcessesOf } from '../config/workers.ts';
import { type Finding, ok } from './finding.ts';
import { createPostgresPool } from './postgres-pool.ts';
import { checkSchemas, StoreSetupError } from './postgres-schemas.ts';

const CONNECT_MS = 3_000;
/** Oldest major version that the functions are tested on. */
const OLDEST_MAJOR = 15;
/** Only the server's clock times windows. If it is far from this machine's, logs are hard to read. */
const FAR_MS = 1_000;

/** Checks a server, a database and its schema. */
export async function examinePostgres(config: Config, store: PostgresStore): Promise<Finding[]> {
  const pool = createPostgresPool({ ...store, maxConnections: 2 }, () => {}, { silenceMs: CONNECT_MS });
  try {
    const settings = await settingsOf(pool);
    if (settings instanceof Error)
      return [fault('reachable', `${settings.message}: the gateway would serve degraded, or not start`)];
    return [ok('reachable', '1 server'), ...judge(settings, config, store), await examineSchema(pool, store)];
  } finally {
    await pool.end();
  }
}

/** One row of what a server says about itself. */
interface Settings {
  readonly version: string;
  readonly encoding: string;
  readonly isolation: string;
  readonly standby: boolean;
  readonly readonly: boolean;
  readonly durable: boolean;
  readonly room: number;
  readonly now: string;
}

async function settingsOf(pool: Pool): Promise<Settings | Error> {
  try {
    const { rows } = await pool.query<Settings>(`select
      current_setting('server_version') as version,
      current_setting('server_encoding') as encoding,
      current_setting('default_transaction_isolation') as isolation,
      pg_is_in_recovery() as standby,
      current_setting('default_transaction_read_only')::boolean as readonly,
      current_setting('synchronous_commit') <> 'off' and current_setting('fsync')::boolean as durable,
      current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer as room,
      (extract(epoch from clock_timestamp()) * 1000)::text as now`);
    return rows[0] as Settings;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function judge(settings: Settings, config: Config, store: PostgresStore): Finding[] {
  const { version, encoding, isolation, durable, room } = settings;
  const isIdempotent = config.routes.some(({ idempotent = false }) => idempotent !== false);
  const wanted = store.maxConnections * storeProcessesOf(config);
  const distance = Math.abs(Number(settings.now) - Date.now());
  const isWritable = !settings.standby && !settings.readonly;
  return [
    Number.parseInt(version, 10) >= OLDEST_MAJOR
      ? ok('version', version)
      : fault('version', `${version}: PostgreSQL ${OLDEST_MAJOR} or newer is needed`),
    isWritable
      ? ok('role', 'writable')
      : fault(
          'role',
          `${settings.standby ? 'a standby' : 'read-only'}: connect to the primary, with a user that may write`,
        ),
    encoding === 'UTF8' ? ok('encoding', encoding) : fault('encoding', `${encoding}: create a database with UTF8`),
    isolation === 'read committed'
      ? ok('isolation', isolation)
      : fault('isolation', `${isolation}: alter role … set default_transaction_isolation = 'read committed'`),
    durability(durable, isIdempotent),
    wanted <= room
      ? ok('connections', `${wanted} of ${room} for this gateway`)
      : warning(
          'connections',
          `this gateway opens up to ${wanted}, and the server has ${room}: lower maxConnections or workers, raise max_connections, or use PgBouncer`,
        ),
    distance <= FAR_MS
      ? ok('clock', `${Math.round(distance)} ms from this machine's`)
      : warning('clock', `${Math.round(distance / 1_000)} s from this machine's; limits use only the server's clock`),
  ];
}

function durability(durable: boolean, isIdempotent: boolean): Finding {
  if (durable) return ok('durability', 'commits survive a crash');
  if (!isIdempotent)
    return ok('durability', 'a crash may forget the last requests: synchronous_commit or fsync is off');
  const text =
    'synchronous_commit or fsync is off: a crash may forget idempotency keys, and a retry is executed again; set both on';
  return warning('durability', text);
}

async function examineSchema(pool: Pool, store: PostgresStore): Promise<Finding> {
  try {
    await checkSchemas(pool, store, CONNECT_MS);
    return ok('schema', `${store.schema} is there, and this user may use it`);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return error instanceof StoreSetupError ? fault('schema', text) : warning('schema', `check failed: ${text}`);
  }
}

function warning(subject: string, text: string): Finding {
  return { verdict: 'warning', subject, text };
}

function fault(subject: string, text: string): Finding {
  return { verdict: 'fault', subject, text };
}
