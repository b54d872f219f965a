/** One of several processes that share a server: see processes.test.ts. */
import { createIdempotency, createLimiter } from 'headgate';
import pg from 'pg';
import { createPostgresClaimStore } from '../../src/claim-store.ts';
import { createPostgresStore } from '../../src/limit-store.ts';

export interface Task {
  readonly url: string;
  readonly schema: string;
  readonly name: 'limits' | 'claims';
}

/** Accepted requests of each route, in a burst of all routes. */
async function consume({ url, schema }: Task): Promise<Record<string, number>> {
  const pool = new pg.Pool({ connectionString: url });
  const limits = {
    allMethods: { windows: ['60/1h', '500/1d'], scope: 'account' as const },
    routes: { 'GET /a': ['10/1h'] },
  };
  const store = createPostgresStore(pool, { schema, deadlineMs: 60_000 });
  const limiter = createLimiter({ store, limits, logger: false });
  const routes = ['GET /a', 'GET /b', 'GET /c', 'GET /d'];
  const accepted: Record<string, number> = {};
  await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      // Two accounts, so that calls of one process overlap.
      const route = routes[i % routes.length] ?? '';
      const account = i % 3 === 0 ? 'acc_2' : 'acc_1';
      const decision = await limiter.consume({ account, route });
      const name = `${account} ${route}`;
      if (decision.accepted) accepted[name] = (accepted[name] ?? 0) + 1;
    }),
  );
  await pool.end();
  return accepted;
}

/** What `run` returned for each key. Each execution leaves a row. */
async function claim({ url, schema }: Task): Promise<Record<string, unknown>> {
  const pool = new pg.Pool({ connectionString: url });
  const store = createPostgresClaimStore(pool, { schema, deadlineMs: 60_000 });
  const idempotency = createIdempotency({ store, waitMs: 60_000 });
  const values: Record<string, unknown> = {};
  await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const result = await idempotency.run({ scope: 'app', key: `key ${i}` }, 'the request', async () => {
        const { rows } = await pool.query(`insert into ${schema}.executions (key) values ($1) returning id`, [i]);
        return Number(rows[0].id);
      });
      values[i] = 'value' in result ? result.value : result.kind;
    }),
  );
  await idempotency.close();
  await pool.end();
  return values;
}

process.once('message', async (task: Task) => {
  const result = await (task.name === 'limits' ? consume(task) : claim(task));
  process.send?.(result, () => process.disconnect());
});
