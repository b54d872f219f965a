/** One of several processes that execute keys, and that are killed: see test/transactions/kill-postgres.nightly.test.ts. */
import pg from 'pg';
import { createTransactionalIdempotency } from '../../src/transactions/transactional-idempotency.ts';

export interface Task {
  readonly url: string;
  readonly schema: string;
  readonly keys: readonly string[];
}

/** What a client was told. */
export interface Told {
  readonly key: string;
  readonly kind: string;
  readonly value?: unknown;
}

async function pay({ url, schema, keys }: Task): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  pool.on('error', () => undefined);
  const idempotency = createTransactionalIdempotency(pool, { schema, deadlineMs: 2_000, logger: false });
  const send = async (key: string): Promise<void> => {
    const result = await idempotency
      .run({ scope: 'app', key }, { key }, async (transaction) => {
        const insert = 'insert into payments (key) values ($1) returning id';
        const { rows } = await transaction.query(insert, [key]);
        return rows[0].id as string;
      })
      .catch((error: unknown) => ({ kind: 'thrown', value: String(error) }));
    process.send?.({ key, kind: result.kind, value: 'value' in result ? result.value : undefined } satisfies Told);
  };
  const left = [...keys];
  // Each key is sent three times at once.
  const work = async (): Promise<void> => {
    for (let key = left.pop(); key !== undefined; key = left.pop())
      await Promise.all([send(key), send(key), send(key)]);
  };
  await Promise.all([work(), work(), work()]);
  await pool.end();
}

process.once('message', async (task: Task) => {
  await pay(task);
  process.disconnect();
});
