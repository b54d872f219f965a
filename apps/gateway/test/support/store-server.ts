import { createPostgresAdjustments, createPostgresStore, migrate } from 'headgate/postgres';
import { createRedisAdjustments, createRedisStore } from 'headgate/redis';
import type { AdjustmentStore, LimitStore } from 'headgate/stores';
import { afterFile } from 'headgate-testbed/after-file';
import { type PostgresServer, postgresUrl, startPostgres } from 'headgate-testbed/postgres-server';
import { type RedisServer, startRedis } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { afterAll, inject } from 'vitest';
import type { BoardStorage } from '../../src/store/fleet-board.ts';
import { boardSql, postgresBoard } from '../../src/store/postgres-board.ts';
import { redisBoard } from '../../src/store/redis-board.ts';

/** The kind of server on which the tests of this run put the store. */
export const KIND: 'redis' | 'postgres' = inject('storeKind') ?? 'redis';
export const isRedis = KIND === 'redis';

/** A server for the store of gateways, which a test may damage. It keeps its data if it is killed. */
export interface StoreServer
  extends Pick<RedisServer & PostgresServer, 'port' | 'freeze' | 'thaw' | 'kill' | 'restart' | 'stop'> {
  /**
   * `store` of a config.
   * @param port the port of a proxy in front of the server
   */
  store(port?: number): unknown;
  /** Connects as another program with the same server does. */
  connect(): Promise<OtherProgram>;
}

/** The stores of another program. */
export interface OtherProgram {
  readonly adjustments: AdjustmentStore;
  readonly limits: LimitStore & Required<Pick<LimitStore, 'block'>>;
  readonly board: BoardStorage;
  /** Replaces the details that gateways said by an object without their fields. */
  spoilDetails(): Promise<void>;
  /** Removes everything, as a server that loses its data does. */
  clear(): Promise<void>;
  disconnect(): void;
}

const SPOILT = '{"top":{}}';

/** Starts a server, in PostgreSQL with the schema of a gateway. */
export async function startStoreServer(): Promise<StoreServer> {
  return isRedis ? startRedisStore() : startPostgresStore();
}

/** Starts a server for the tests of a file. Await it at the top of the file. */
export async function storeServerForFile(): Promise<StoreServer> {
  const server = await startStoreServer();
  afterAll(() => server.stop());
  return server;
}

async function startRedisStore(): Promise<StoreServer> {
  const server = await startRedis('--appendonly', 'yes', '--appendfsync', 'no');
  return {
    ...server,
    store: (port = server.port) => `redis://127.0.0.1:${port}/0`,
    async connect() {
      const client = new Redis({ port: server.port, host: '127.0.0.1', retryStrategy: () => 50 });
      client.on('error', () => {});
      await client.ping();
      return {
        adjustments: createRedisAdjustments(client),
        limits: createRedisStore(client, { deadlineMs: 10_000 }) as OtherProgram['limits'],
        board: redisBoard(client),
        clear: async () => void (await client.flushall()),
        async spoilDetails() {
          for (const key of await client.keys('headgate:fleet:{fleet}:about:*')) await client.set(key, SPOILT);
        },
        disconnect: () => client.disconnect(),
      };
    },
  };
}

async function startPostgresStore(): Promise<StoreServer> {
  const server = await startPostgres();
  const connectPool = (): Pool => {
    const pool = new Pool({ connectionString: server.url(), connectionTimeoutMillis: 2_000 });
    pool.on('error', () => {});
    return pool;
  };
  const pool = connectPool();
  for (const schema of ['headgate', 'headgate_shadow']) await migrate(pool, { schema });
  await pool.query(boardSql('headgate'));
  await pool.end();
  return {
    ...server,
    store: (port = server.port) => ({ postgres: { url: postgresUrl(port), migrate: true } }),
    async connect() {
      const client = connectPool();
      return {
        adjustments: createPostgresAdjustments(client),
        limits: createPostgresStore(client, { deadlineMs: 10_000 }) as OtherProgram['limits'],
        board: postgresBoard(client, 'headgate'),
        async clear() {
          const { rows } = await client.query<{ name: string }>(
            "select schemaname || '.' || tablename as name from pg_tables where schemaname like 'headgate%' and tablename <> 'meta'",
          );
          await client.query(rows.map(({ name }) => `delete from ${name};`).join(' '));
        },
        async spoilDetails() {
          await client.query('update headgate.gateway_board_1 set text = $1', [SPOILT]);
        },
        disconnect: () => void client.end(),
      };
    },
  };
}

/** Connects to a server until the end of the file. */
export async function connectForFile(server: StoreServer): Promise<OtherProgram> {
  const program = await server.connect();
  afterFile(() => program.disconnect());
  return program;
}
