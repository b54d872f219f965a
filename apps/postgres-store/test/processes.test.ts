import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { bundle } from 'headgate-testbed/bundle';
import { afterAll, expect, inject, test } from 'vitest';
import { countOf, migratedPool } from './support/pool.ts';
import type { Task } from './support/worker.ts';

const PROCESSES = 4;
const SCHEMA = 'processes';

const pool = await migratedPool(SCHEMA);
const worker = await bundle(join(import.meta.dirname, 'support/worker.ts'));
afterAll(() => rm(dirname(worker), { recursive: true }));

/** The results of the processes, which all run at the same time. */
async function inProcesses(name: Task['name']): Promise<Record<string, unknown>[]> {
  const children = Array.from({ length: PROCESSES }, () => fork(worker, { execArgv: [] }));
  const task: Task = { url: inject('postgresStore').url, schema: SCHEMA, name };
  return Promise.all(
    children.map(async (child) => {
      child.send(task);
      const ended = once(child, 'exit').then(([code, signal]) => {
        throw new Error(`a process ended with ${code ?? signal}, without a result`);
      });
      const [result] = await Promise.race([once(child, 'message'), ended]);
      return result;
    }),
  );
}

test('S1, S5: processes that charge the same accounts accept exactly what fits, and never block each other', async () => {
  const results = await inProcesses('limits');
  const total = (name: string): number => results.reduce((sum, each) => sum + Number(each[name] ?? 0), 0);
  for (const account of ['acc_1', 'acc_2']) {
    expect(total(`${account} GET /a`)).toBe(10);
    const ofAccount = ['a', 'b', 'c', 'd'].map((route) => total(`${account} GET /${route}`));
    expect(ofAccount.reduce((sum, each) => sum + each)).toBe(60);
  }
});

test('I5, I9: a key that several processes use is executed once, and each of them gets its result', async () => {
  await pool.query(`create table ${SCHEMA}.executions (id serial primary key, key integer not null)`);
  const results = await inProcesses('claims');
  expect(await countOf(pool, `${SCHEMA}.executions`)).toBe(20);
  for (const result of results) expect(result).toEqual(results[0]);
  expect(new Set(Object.values(results[0] ?? {})).size).toBe(20);
});
