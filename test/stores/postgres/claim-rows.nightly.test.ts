import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterFile } from 'headgate-testbed/after-file';
import { bundle } from 'headgate-testbed/bundle';
import { startPostgres } from 'headgate-testbed/postgres-server';
import { expect, it } from 'vitest';
import { migrate } from '../../../src/stores/postgres/schema.ts';
import { mailer, send } from '../../support/mails.ts';
import { newPool } from '../../support/postgres.ts';
import type { MailTask } from '../../support/postgres-mails-worker.ts';

const KEYS = Array.from({ length: 4_000 }, (_, i) => `key ${i}`);
const PROCESSES = 4;
const KILLS = 12;

it('each mail is sent once and has its rows, although processes and PostgreSQL are killed all the time', async () => {
  const server = await startPostgres();
  afterFile(() => server.stop());
  const folder = await mkdtemp(join(tmpdir(), 'mails-'));
  afterFile(() => rm(folder, { recursive: true }));
  const provider = join(folder, 'sent');
  await writeFile(provider, '');
  const worker = await bundle(resolve(import.meta.dirname, '../../support/postgres-mails-worker.ts'));
  afterFile(() => rm(dirname(worker), { recursive: true }));
  const pool = newPool({ connectionString: server.url() });
  await migrate(pool);
  await pool.query(
    'create table mails (id text primary key, state text, dispatches integer); create table events (mail text)',
  );

  const children = new Set<ChildProcess>();
  let kills = 0;
  /** A process that is started again when it is killed. It begins anew with its keys. */
  const live = async (keys: readonly string[]): Promise<void> => {
    for (;;) {
      const child = fork(worker, { execArgv: [] });
      children.add(child);
      child.send({ url: server.url(), provider, keys } satisfies MailTask);
      const [code] = await once(child, 'exit');
      children.delete(child);
      if (code === 0) return;
      kills++;
    }
  };
  // Two processes share each half of the keys.
  const lives = Array.from({ length: PROCESSES }, (_, i) => live(KEYS.filter((_key, at) => at % 2 === i % 2)));
  for (let kill = 0; kill < KILLS; kill++) {
    await pause(500);
    if (kill % 3 === 2) await server.kill().then(() => server.restart());
    else [...children][kill % PROCESSES]?.kill('SIGKILL');
  }
  await Promise.all(lives);
  expect(kills).toBeGreaterThan(0);

  // A job resolves the orphans, then each key that was freed is sent.
  const idempotency = mailer(pool, provider);
  await pause(1_500);
  const { rows: orphans } = await pool.query<{ key: string }>(
    `select key::json #>> '{}' as key from headgate.claims where state <> 'completed' and dispatched`,
  );
  for (const { key } of orphans)
    expect(await idempotency.reconcile({ scope: 'app', key })).toMatch(/completed|released/);
  for (const key of KEYS) {
    await expect.poll(() => send(idempotency, provider, key), { timeout: 10_000 }).toMatch(/executed|replayed/);
  }
  await idempotency.close();

  const lines = (await readFile(provider, 'utf8')).trim().split('\n');
  expect(lines.length).toBe(KEYS.length);
  expect(new Set(lines).size).toBe(KEYS.length);
  const count = async (text: string) => Number((await pool.query(`select count(*) from ${text}`)).rows[0].count);
  expect(await count(`mails where state = 'sent'`)).toBe(KEYS.length);
  expect(await count(`mails where state <> 'sent'`)).toBe(0);
  expect(await count('events')).toBe(KEYS.length);
  expect(await count('(select distinct mail from events) as mails')).toBe(KEYS.length);
  expect(await count(`headgate.claims where state = 'completed'`)).toBe(KEYS.length);
}, 300_000);
