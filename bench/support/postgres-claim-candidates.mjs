// One idempotency key with its outcome, or one row of a handler with and without a key.
import pg from 'pg';

const RESULT = JSON.stringify({ id: 'msg_1', status: 'queued', at: 1_700_000_000_000 });
const FINGERPRINT = 'f'.repeat(43);
const RETENTION_MS = 86_400_000;

/** By name, `({ url })`. Each call uses a new key. */
export const CLAIM_CANDIDATES = {
  /** The floor of a claim: a row, and its outcome. */
  async 'two statements'({ url }) {
    const pool = new pg.Pool({ connectionString: url });
    await pool.query('create table if not exists keys (key text primary key, fingerprint text, value text)');
    const key = keys('two');
    return {
      async decide() {
        const name = key();
        await pool.query('insert into keys values ($1, $2) on conflict do nothing', [name, FINGERPRINT]);
        return pool.query('update keys set value = $2 where key = $1', [name, RESULT]);
      },
      isExpected: ({ rowCount }) => rowCount === 1,
    };
  },

  async claim({ url }) {
    const { createPostgresClaimStore, migrate } = await import('headgate/postgres');
    const pool = new pg.Pool({ connectionString: url });
    await migrate(pool, { schema: 'claim' });
    const store = createPostgresClaimStore(pool, { schema: 'claim', deadlineMs: 10_000 });
    const key = keys('claim');
    return {
      async decide() {
        const id = { scope: 'app', key: key() };
        const common = { token: id.key, fingerprint: FINGERPRINT, retentionMs: RETENTION_MS };
        await store.begin(id, { ...common, leaseMs: 30_000, onOrphan: 'reject', dispatch: true });
        return store.complete(id, { ...common, result: { status: 'ok', value: RESULT } });
      },
      isExpected: ({ kind }) => kind === 'ok',
    };
  },

  async row({ url }) {
    const pool = await poolWithRows(url, 'plain');
    return { decide: () => insertRow(pool, 'plain'), isExpected: ({ rowCount }) => rowCount === 1 };
  },

  async 'row in a transaction'({ url }) {
    const pool = await poolWithRows(url, 'transactional');
    return {
      async decide() {
        const client = await pool.connect();
        await client.query('begin');
        const result = await insertRow(client, 'transactional');
        await client.query('commit');
        client.release();
        return result;
      },
      isExpected: ({ rowCount }) => rowCount === 1,
    };
  },

  async 'row with its key'({ url }) {
    const { createTransactionalIdempotency, migrate } = await import('headgate/postgres');
    const pool = await poolWithRows(url, 'keyed');
    await migrate(pool, { schema: 'keyed_claims' });
    const idempotency = createTransactionalIdempotency(pool, { schema: 'keyed_claims', deadlineMs: 10_000 });
    const key = keys('keyed');
    return {
      decide: () =>
        idempotency.run({ scope: 'app', key: key() }, RESULT, (client) => insertRow(client, 'keyed').then(() => 1)),
      isExpected: ({ kind }) => kind === 'executed',
    };
  },
};

function keys(prefix) {
  let count = 0;
  return () => `${prefix}-${process.pid}-${++count}`;
}

async function poolWithRows(url, table) {
  const pool = new pg.Pool({ connectionString: url });
  await pool.query(`create table if not exists ${table} (id bigserial primary key, body text not null)`);
  return pool;
}

const insertRow = (client, table) => client.query(`insert into ${table} (body) values ($1)`, [RESULT]);
