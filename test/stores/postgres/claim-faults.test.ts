/** Idempotency keys on a server that is killed, frozen or read-only: with leases, and in transactions. */
import { afterFile } from 'headgate-testbed/after-file';
import { startPostgres } from 'headgate-testbed/postgres-server';
import { afterEach, expect, it } from 'vitest';
import { createIdempotency } from '../../../src/idempotency/idempotency.ts';
import { createPostgresClaimStore } from '../../../src/stores/postgres/claims.ts';
import { migrate } from '../../../src/stores/postgres/schema.ts';
import { createTransactionalIdempotency } from '../../../src/transactions/transactional-idempotency.ts';
import { newPool } from '../../support/postgres.ts';

const DEADLINE_MS = 300;
const REQUEST = { amount: 5 };

const server = await startPostgres();
afterFile(() => server.stop());
const pool = newPool({ connectionString: server.url(), max: 5 });
await migrate(pool);
await pool.query('create table payments (id text primary key); create table mails (id text primary key, state text)');
const admin = newPool({ connectionString: server.url(), max: 1 });
afterEach(() => server.thaw());

const leased = createIdempotency({
  store: createPostgresClaimStore(pool, { deadlineMs: DEADLINE_MS, logger: false }),
  logger: false,
});
const inTransactions = createTransactionalIdempotency(pool, { deadlineMs: DEADLINE_MS, waitMs: 500, logger: false });

const withRows = createIdempotency({
  store: createPostgresClaimStore(pool, {
    deadlineMs: DEADLINE_MS,
    logger: false,
    rows: {
      dispatch: { mail: `insert into mails select note #>> '{}', 'sending' from step` },
      complete: { mail: `update mails set state = state || ' sent' from step where id = note #>> '{}'` },
      abandon: { mail: `delete from mails using step where id = note #>> '{}'` },
    },
  }),
  logger: false,
});

let executed = 0;
const KINDS = [
  ['with a lease', (key: string) => leased.run(key, REQUEST, () => ++executed)],
  [
    'in a transaction',
    (key: string) =>
      inTransactions.run(key, REQUEST, async (transaction) => {
        await transaction.query('insert into payments values ($1)', [key]);
        return ++executed;
      }),
  ],
] as const;

/** Waits until a key is executed or replayed again. */
const recovered = (run: (key: string) => Promise<{ kind: string }>, key: string) =>
  expect.poll(async () => (await run(key)).kind, { timeout: 30_000 });

const WITH_ROWS = [
  'with rows',
  (key: string) =>
    withRows.run(
      key,
      REQUEST,
      async ({ dispatch, noteOutcome }) => {
        await dispatch(key);
        noteOutcome(key);
        return ++executed;
      },
      { dispatch: 'explicit' },
    ),
] as const;

it.each([...KINDS, WITH_ROWS])(
  '%s: on a killed server nothing is executed, and afterwards each key replays',
  async (kind, run) => {
    expect(await run(`${kind} before`)).toMatchObject({ kind: 'executed' });
    await server.kill();
    const count = executed;
    for (let i = 0; i < 3; i++) expect(await run(`${kind} during`)).toMatchObject({ kind: 'unavailable' });
    expect(executed).toBe(count);
    await server.restart();
    await recovered(run, `${kind} before`).toBe('replayed');
    await recovered(run, `${kind} during`).toMatch(/executed|replayed/);
    expect(await run(`${kind} during`)).toMatchObject({ kind: 'replayed', value: executed });
  },
);

it.each(KINDS)('%s: on a frozen server nothing is executed, and a retry after it executes once', async (kind, run) => {
  await run(`${kind} warm`);
  server.freeze();
  const count = executed;
  const results = await Promise.all(Array.from({ length: 20 }, (_, i) => run(`${kind} frozen ${i}`)));
  expect(new Set(results.map((result) => result.kind))).toEqual(new Set(['unavailable']));
  expect(executed).toBe(count);
  server.thaw();
  await recovered(run, `${kind} frozen 0`).toMatch(/executed|replayed/);
  expect(await run(`${kind} frozen 0`)).toMatchObject({ kind: 'replayed' });
});

it.each(KINDS)('%s: on a read-only server nothing is executed', async (kind, run) => {
  await admin.query('alter system set default_transaction_read_only = on');
  await admin.query('select pg_reload_conf()');
  try {
    // A connection that was open before may still write until the server read its settings again.
    let attempt = 0;
    await expect.poll(async () => (await run(`${kind} ${attempt++}`)).kind, { timeout: 30_000 }).toBe('unavailable');
    const count = executed;
    expect(await run(`${kind} read-only`)).toMatchObject({ kind: 'unavailable' });
    expect(executed).toBe(count);
  } finally {
    await admin.query('alter system reset default_transaction_read_only');
    await admin.query('select pg_reload_conf()');
  }
  await recovered(run, `${kind} read-only`).toMatch(/executed|replayed/);
});

it('with rows: each completed key has its row, which was written once', async () => {
  await withRows.idle();
  const { rows } = await pool.query(
    `select m.state, c.state as claim from mails as m full join headgate.claims as c on c.key = to_json(m.id)::text
     where m.id is not null or c.key like '%with rows%'`,
  );
  expect(rows.length).toBeGreaterThanOrEqual(2);
  expect(rows.filter(({ state, claim }) => state !== 'sending sent' || claim !== 'completed')).toEqual([]);
});

it('in a transaction: each row has its key, and each key its row', async () => {
  const { rows } = await pool.query(
    `select (select count(*) from payments)::int as rows,
       (select count(*) from headgate.claims where key like '%in a transaction%' and state = 'completed')::int as keys`,
  );
  expect(rows[0].keys).toBe(rows[0].rows);
  expect(rows[0].rows).toBeGreaterThan(3);
});
