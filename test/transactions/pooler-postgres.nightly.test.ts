import { afterFile } from 'headgate-testbed/after-file';
import { startPgBouncer } from 'headgate-testbed/pgbouncer';
import { startPostgres } from 'headgate-testbed/postgres-server';
import pg from 'pg';
import postgres from 'postgres';
import { expect, it } from 'vitest';
import { createIdempotency } from '../../src/idempotency/idempotency.ts';
import { createPostgresClaimStore } from '../../src/stores/postgres/claims.ts';
import { migrate } from '../../src/stores/postgres/schema.ts';
import { createTransactionalIdempotency } from '../../src/transactions/transactional-idempotency.ts';

const server = await startPostgres();
afterFile(() => server.stop());
// Few connections to the server for many clients, so that most statements change their connection.
const pooler = await startPgBouncer(server.port, 3);
afterFile(() => pooler.stop());
const pool = new pg.Pool({ connectionString: pooler.url(), max: 20 });
afterFile(() => pool.end());
const sql = postgres(pooler.url(), { prepare: false, max: 20, fetch_types: false, onnotice: () => undefined });
afterFile(() => sql.end());
await migrate(pool);
await pool.query('create table payments (key text not null)');
const KEYS = Array.from({ length: 40 }, (_, i) => `key ${i}`);
const options = { deadlineMs: 30_000, waitMs: 30_000 };

it('behind PgBouncer in transaction mode, keys are executed once, in transactions and with leases', async () => {
  // Several processes, as far as the database can tell.
  const ofPg = Array.from({ length: 2 }, () => createTransactionalIdempotency(pool, options));
  const ofPostgres = createTransactionalIdempotency(sql, options);
  const inTransactions = KEYS.flatMap((key) => [
    ...ofPg.map((each) =>
      each.run(key, {}, async (transaction) => {
        await transaction.query('insert into payments values ($1)', [key]);
        return key;
      }),
    ),
    ofPostgres.run(key, {}, async (transaction) => {
      await transaction`insert into payments values (${key})`;
      return key;
    }),
  ]);
  const results = await Promise.all(inTransactions);
  expect(results.filter(({ kind }) => kind === 'executed')).toHaveLength(KEYS.length);
  expect(results.filter(({ kind }) => kind === 'replayed')).toHaveLength(2 * KEYS.length);
  expect((await pool.query('select key from payments')).rows).toHaveLength(KEYS.length);

  const leased = [pool, sql].map((client) =>
    createIdempotency({ store: createPostgresClaimStore(client, { deadlineMs: 30_000 }) }),
  );
  const withLeases = KEYS.flatMap((key) => leased.map((each) => each.run(`leased ${key}`, {}, () => key)));
  const kinds = (await Promise.all(withLeases)).map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'executed')).toHaveLength(KEYS.length);
  expect(kinds.filter((kind) => kind === 'replayed')).toHaveLength(KEYS.length);
}, 120_000);
