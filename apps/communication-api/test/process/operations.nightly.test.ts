import { setTimeout as pause } from 'node:timers/promises';
import { until } from 'headgate-testbed/redis-server';
import { sql } from 'kysely';
import { test } from 'vitest';
import { startCrashWorld } from '../support/crashes.ts';
import { runProcess, runToEnd, startProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const adminOf = (out: string): string => /(http:\/\/\S+)\/readyz/.exec(out)?.[1] ?? '';

test.concurrent('the health checks say first that a process ends; requests are served meanwhile, and the exit code is 0', async ({
  expect,
}) => {
  const environment = { DATA_DIR: temporaryFolder(), ADMIN_PORT: '0', SHUTDOWN_DELAY_MS: '5000' };
  const { ready, printed, child, exit } = runProcess([], environment);
  const url = await ready();
  const admin = adminOf(printed.out);
  const statusOf = async (of: string): Promise<unknown> => {
    const answer = await fetch(of);
    return [answer.status, await answer.json()];
  };
  expect(await statusOf(`${admin}/readyz`)).toEqual([200, { status: 'ok', database: 'ok', schema: 'current' }]);
  expect(await statusOf(`${admin}/healthz`)).toEqual([200, { status: 'ok' }]);
  expect(await statusOf(`${url}/healthz`)).toEqual([200, { status: 'ok' }]);
  expect((await fetch(`${admin}/nothing`)).status).toBe(404);
  expect((await fetch(`${admin}/metrics`, { method: 'POST' })).status).toBe(404);
  const metrics = await fetch(`${admin}/metrics`);
  expect(metrics.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  expect(await metrics.text()).toMatch(/^process_cpu_seconds_total/m);

  child.kill('SIGTERM');
  await expect.poll(() => statusOf(`${admin}/readyz`)).toEqual([503, { status: 'draining' }]);
  expect(await statusOf(`${admin}/healthz`)).toEqual([503, { status: 'draining' }]);
  expect(await statusOf(`${url}/healthz`)).toEqual([503, { status: 'draining' }]);
  expect(await statusOf(`${admin}/livez`)).toEqual([200, { status: 'ok' }]);
  // A balancer that has not noticed yet.
  const served = await fetch(`${url}/openapi.json`);
  expect([served.status, served.headers.get('connection')]).toEqual([200, 'close']);
  expect(await exit).toBe(0);
  await expect(fetch(`${admin}/livez`)).rejects.toThrow();
});

test.concurrent('a port of the admin listener that is in use is an error that names it', async ({ expect }) => {
  const { ready, printed } = runProcess([], { DATA_DIR: temporaryFolder(), ADMIN_PORT: '0' });
  await ready();
  const { port } = new URL(adminOf(printed.out));
  expect(await runToEnd([], { DATA_DIR: temporaryFolder(), ADMIN_PORT: port })).toEqual({
    ...{ code: 1, out: expect.not.stringContaining('http') },
    error: expect.stringMatching(new RegExp(`^ADMIN_PORT: another process listens on 127.0.0.1:${port}`)),
  });
});

test.concurrent('a role other than "all" needs a database that processes share', async ({ expect }) => {
  expect(await runToEnd([], { DATA_DIR: temporaryFolder(), ROLE: 'worker' })).toMatchObject({
    ...{ code: 2, error: expect.stringMatching(/^ROLE: only `all` works without DATABASE_URL/) },
  });
});

test.concurrent('one process answers requests and another one works in the background', async ({ expect }) => {
  const world = await startCrashWorld();
  const environment = world.environment;
  const api = await startProcess({ ...environment, ROLE: 'api' });
  const email = await world.newEmail('mock', 'ann@mock.test', { drafts: true });
  // An email that was sent by a process that died long ago: only the sweeper looks for it.
  expect((await world.send(api.url, email)).status).toBe(201);
  await world.db
    .updateTable('sends')
    .set({ state: 'dispatched', dispatched_at: new Date(0), draft_ref: null })
    .execute();
  await sql`update headgate.claims set state = 'in_progress', dispatched = true, status = null, value = null`.execute(
    world.db,
  );
  const stateOf = async () => (await world.db.selectFrom('sends').select('state').executeTakeFirstOrThrow()).state;
  const { application_id } = await world.db.selectFrom('sends').select('application_id').executeTakeFirstOrThrow();
  const job = { kind: 'webhook', lane: 'whe_gone', subject: 'evt_gone', application_id };
  const now = new Date();
  await world.db
    .insertInto('jobs')
    .values({ ...job, next_at: now, created_at: now })
    .execute();
  const jobs = async (): Promise<number> => (await world.db.selectFrom('jobs').select('lane').execute()).length;
  // Longer than a worker takes to find a job.
  await pause(3_000);
  expect(await jobs()).toBe(1);

  const worker = await startProcess({ ...environment, ROLE: 'worker', ADMIN_PORT: '0' });
  expect(worker.output()).toContain('worker: it answers no requests');
  await until(async () => (await jobs()) === 0, 'the worker does the job');
  await until(async () => (await stateOf()) === 'sent', 'the worker sweeps', 60_000);
  const admin = adminOf(worker.output());
  expect((await fetch(`${admin}/readyz`)).status).toBe(200);
  const metrics = await (await fetch(`${admin}/metrics`)).text();
  expect(metrics).toMatch(/^communication_api_processes\{role="api"\} 1$/m);
  expect(metrics).toMatch(/^communication_api_processes\{role="worker"\} 1$/m);
  for (const each of [worker, api]) {
    each.child.kill('SIGTERM');
    expect(await each.ended).toBe(0);
  }
  expect(await world.db.selectFrom('instances').select('id').execute()).toEqual([]);
});
