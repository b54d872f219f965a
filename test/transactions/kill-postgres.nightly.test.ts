import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterFile } from 'headgate-testbed/after-file';
import { bundle } from 'headgate-testbed/bundle';
import { startPostgres } from 'headgate-testbed/postgres-server';
import pg from 'pg';
import { expect, it } from 'vitest';
import { migrate } from '../../src/stores/postgres/schema.ts';
import { createTransactionalIdempotency } from '../../src/transactions/transactional-idempotency.ts';
import type { Task, Told } from '../support/postgres-payments-worker.ts';

const schema = 'kills';
const KEYS = Array.from({ length: 2_000 }, (_, i) => `key ${i}`);
const PROCESSES = 4;
const KILLS = 12;

it('keys are executed once each, although processes and PostgreSQL are killed all the time', async () => {
  const server = await startPostgres();
  afterFile(() => server.stop());
  const worker = await bundle(resolve(import.meta.dirname, '../support/postgres-payments-worker.ts'));
  afterFile(() => rm(dirname(worker), { recursive: true }));
  const pool = new pg.Pool({ connectionString: server.url() });
  pool.on('error', () => undefined);
  afterFile(() => pool.end());
  await migrate(pool, { schema });
  await pool.query('create table payments (id uuid primary key default gen_random_uuid(), key text not null)');

  const told: Told[] = [];
  const children = new Set<ChildProcess>();
  let isOver = false;
  /** A process that is started again when it is killed. It begins anew with its keys. */
  const live = async (keys: readonly string[]): Promise<void> => {
    for (;;) {
      const child = fork(worker, { execArgv: [] });
      children.add(child);
      child.on('message', (message) => void told.push(message as Told));
      child.send({ url: server.url(), schema, keys } satisfies Task);
      const [code] = await once(child, 'exit');
      children.delete(child);
      if (code === 0) return;
      if (isOver && code !== null) throw new Error(`a process ended with ${code}`);
    }
  };
  // Two processes share each half of the keys.
  const lives = Array.from({ length: PROCESSES }, (_, i) => live(KEYS.filter((_key, at) => at % 2 === i % 2)));
  for (let kill = 0; kill < KILLS; kill++) {
    await pause(700);
    if (kill % 3 === 2) await server.kill().then(() => server.restart());
    else [...children][kill % PROCESSES]?.kill('SIGKILL');
  }
  isOver = true;
  await Promise.all(lives);

  const { rows } = await pool.query<{ id: string; key: string }>('select id, key from payments');
  const ids = new Map(rows.map(({ id, key }) => [key, id]));
  expect(ids.size).toBe(rows.length);
  // A client that was told a success finds exactly that row.
  const successes = told.filter(({ kind }) => kind === 'executed' || kind === 'replayed');
  expect(successes.length).toBeGreaterThan(KEYS.length);
  expect(successes.filter(({ key, value }) => ids.get(key) !== value)).toEqual([]);
  // Every key ends replayable, or free.
  const idempotency = createTransactionalIdempotency(pool, { schema, deadlineMs: 10_000 });
  for (const key of KEYS) {
    const result = await idempotency.run({ scope: 'app', key }, { key }, () => 'free');
    expect(result).toEqual(
      ids.has(key) ? { kind: 'replayed', value: ids.get(key) } : { kind: 'executed', value: 'free' },
    );
  }
  // No claim is without its row.
  const { rows: claims } = await pool.query(`select key from ${schema}.claims where value <> '"\\"free\\""'`);
  expect(claims).toHaveLength(rows.length);
}, 300_000);
