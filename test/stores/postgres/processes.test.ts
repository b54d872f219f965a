import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { afterFile } from 'headgate-testbed/after-file';
import { bundle } from 'headgate-testbed/bundle';
import { expect, it } from 'vitest';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import { migrated, newPool, sharedUrl } from '../../support/postgres.ts';
import type { Result, Task } from '../../support/postgres-limits-worker.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const SCHEMA = 'processes';
const pool = await migrated(newPool(), SCHEMA);

it('S1, S5: processes that charge and settle the same accounts count exactly, and never deadlock', async () => {
  const worker = await bundle(resolve(import.meta.dirname, '../../support/postgres-limits-worker.ts'));
  afterFile(() => rm(dirname(worker), { recursive: true }));
  const results = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const child = fork(worker, { execArgv: [] });
      const ended = once(child, 'exit').then(([code, signal]) => {
        throw new Error(`a process ended with ${code ?? signal}, without a result`);
      });
      child.send({ url: sharedUrl(), schema: SCHEMA } satisfies Task);
      const [result] = (await Promise.race([once(child, 'message'), ended])) as [Result];
      ended.catch(() => undefined);
      return result;
    }),
  );
  expect(results.flatMap(({ errors }) => errors)).toEqual([]);
  const store = createPostgresStore(pool, { schema: SCHEMA, deadlineMs: 60_000 });
  const shared = windowSetFrom(['40/1h'], ['100/1h', '500/1d'], 'account');
  for (const account of ['a0', 'a1', 'a2', 'a3', 'a4']) {
    let ofAccount = 0;
    for (const route of ['r0', 'r1', 'r2', 'r3']) {
      const accepted = results.reduce((sum, each) => sum + (each.accepted[`${account} ${route}`] ?? 0), 0);
      const [window] = await store.peek(account, route, shared);
      expect(40 - (window?.remaining ?? 0)).toBe(accepted);
      ofAccount += accepted;
    }
    const [, hour, day] = await store.peek(account, 'r0', shared);
    expect([100 - (hour?.remaining ?? 0), 500 - (day?.remaining ?? 0)]).toEqual([ofAccount, ofAccount]);
    expect(ofAccount).toBeGreaterThan(60);
  }
});
