/** One of several processes that share a schema: see test/stores/postgres/processes.test.ts. */
import pg from 'pg';
import { createPostgresStore } from '../../src/stores/postgres/limits.ts';
import { windowSetFrom } from './window-set.ts';

export interface Task {
  readonly url: string;
  readonly schema: string;
}

/** Accepted requests of each account and route, and the codes of errors. */
export interface Result {
  readonly accepted: Record<string, number>;
  readonly errors: readonly unknown[];
}

async function consume({ url, schema }: Task): Promise<Result> {
  const pool = new pg.Pool({ connectionString: url });
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push((error as { code?: unknown }).code ?? String(error));
  const options = { schema, deadlineMs: 60_000, onStoreFailure: 'refuse', onError, logger: false } as const;
  const store = createPostgresStore(pool, options);
  await store.ready();
  const shared = windowSetFrom(['40/1h'], ['100/1h', '500/1d'], 'account');
  const accepted: Record<string, number> = {};
  for (let round = 0; round < 4; round++) {
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const [account, route] = [`a${i % 5}`, `r${i % 4}`];
        const decision = await store.consume(account, route, shared, 1);
        if (!decision.accepted) return;
        // Every third charge is taken back, so the sum of what stays is what counts.
        if (i % 3 === 0 && (await store.settle(decision, 0))) return;
        const name = `${account} ${route}`;
        accepted[name] = (accepted[name] ?? 0) + 1;
      }),
    );
    // Accounts of this process only, beside the others: resets wait for no decision in a circle.
    await store.consume(`own ${process.pid}`, 'r', shared, 1);
    await store.reset({ route: `none ${round}` });
    await store.reset({ account: `own ${process.pid}` });
  }
  await pool.end();
  return { accepted, errors };
}

process.once('message', async (task: Task) => {
  const result = await consume(task);
  process.send?.(result, () => process.disconnect());
});
