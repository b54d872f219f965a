/** The Admin API of a primary, with a pool whose answers the test chooses. */
import { afterFile } from 'headgate-testbed/after-file';
import { eventually, openRaw, rawRequest } from 'headgate-testbed/raw-http';
import { expect, it } from 'vitest';
import { createAdminServer } from '../../src/admin/admin-server.ts';
import { checkConfig } from '../../src/config/config.ts';
import { createHealth } from '../../src/operations/health.ts';
import { createMetrics } from '../../src/operations/metrics.ts';
import type { SentEvent } from '../../src/traffic/event-feed.ts';
import type { WorkerPool } from '../../src/workers/pool.ts';
import { openPrimaryAdmin } from '../../src/workers/primary-admin.ts';
import { ADMIN, askAdmin, TOKENS } from '../support/admin.ts';
import { configOf, expectProblem } from '../support/gateway.ts';
import { openLog } from '../support/in-process.ts';

const config = checkConfig({ ...configOf('http://127.0.0.1:1'), admin: ADMIN }, 'test');
const health = createHealth(async () => 'ok');
const metrics = createMetrics([]);
/** The answers of the workers to any question, and the workers that do not answer. */
let answers: unknown[] = [];
let missing: number[] = [];
const obeyed: [string, boolean][] = [];
const workers = () => ({ counted: answers.length, of: answers.length + missing.length, missing });
const pool = {
  ask: async () => ({ each: answers, workers: workers() }),
  async obey(name: string, value: boolean) {
    obeyed.push([name, value]);
    return { each: answers, workers: workers() };
  },
} as unknown as WorkerPool;

const api = await openPrimaryAdmin(config, { log: openLog().log, metrics, health, pool });
const server = createAdminServer({ metrics, health, api });
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as { port: number };
afterFile(async () => {
  server.close();
  server.closeAllConnections();
  await api.close();
});
const read = async (path: string) => JSON.parse((await askAdmin(port, 'GET', path)).text);

it('if no worker answers: 503 for figures, and the answer for what is in the store', async () => {
  [answers, missing] = [[], [1, 2]];
  for (const path of ['/v1/status', '/v1/top', '/v1/series', '/v1/claims/orphans', '/v1/decisions?req_id=x']) {
    const { detail } = expectProblem(await askAdmin(port, 'GET', path), 503, 'errors/service_unavailable');
    expect(detail).toContain('No worker answered in time.');
  }
  expect((await read('/v1/limits')).limits.length).toBeGreaterThan(0);
  expect((await read('/v1/accounts')).accounts).toHaveLength(9);
  const none = { counted: 0, of: 2, missing: [1, 2] };
  const windows = await read('/v1/windows?account=acc_1');
  expect(windows).toMatchObject({ perMinute: { accepted: 0, rejected: 0 }, workers: none });
  expect(windows.routes.length).toBeGreaterThan(0);
  // A candidate that was put is stored, so the answer must not say that it was not.
  const json = { limits: { default: { allMethods: ['1/1m'] } }, store: 'same', sample: 1 };
  const put = await askAdmin(port, 'PUT', '/v1/shadow', { json });
  expect(put.status).toBe(200);
  expect(JSON.parse(put.text).figures).toMatchObject({ total: { none: 0 }, workers: none });
});

it('a worker that does not answer is named, also where an answer says that there is nothing', async () => {
  [answers, missing] = [[[{ scope: 'app_1', key: 'k', atMs: 0 }]], [7]];
  expect(await read('/v1/claims/orphans')).toEqual({
    orphans: [{ application: 'app_1', key: 'k', at: '1970-01-01T00:00:00.000Z' }],
    next: null,
    workers: { counted: 1, of: 2, missing: [7] },
  });
  [answers, missing] = [[undefined], [7]];
  const { detail } = expectProblem(
    await askAdmin(port, 'GET', '/v1/decisions?req_id=x'),
    404,
    'errors/resource_not_found',
  );
  expect(detail).toContain('These workers did not answer in time: 7.');
});

it('workers send events while a client listens; each client gets them once, the earlier ones if it asks', async () => {
  const event = (account: string, atMs: number): SentEvent => {
    const about = { account, route: 'GET /x', outcome: 'accepted' as const };
    return { type: 'decision', atMs, about, data: { account } };
  };
  [answers, missing] = [[[event('b', 2)], [event('a', 1)]], []];
  const listen = async (query: string) => {
    const client = await openRaw(port);
    const fields = { host: 'localhost', authorization: `Bearer ${TOKENS.viewer}` };
    client.write(rawRequest('GET', `/v1/events?types=decision${query}`, fields));
    await eventually(() => client.received().includes(': events follow'), 'the beginning of the stream');
    const accounts = () => [...client.received().matchAll(/"account":"(\w)"/g)].map(([, name]) => name).join('');
    return { client, accounts };
  };
  const first = await listen('&after=0');
  const second = await listen('');
  api.onEvents({ events: [event('c', 3)], dropped: 4 });
  await eventually(() => first.accounts() === 'abc' && second.accounts() === 'c', 'the events');
  expect(second.client.received()).toContain('event: dropped\ndata: {"count":4}');
  expect(obeyed).toEqual([['events', true]]);
  first.client.destroy();
  second.client.destroy();
  await eventually(() => obeyed.length === 2, 'the end');
  expect(obeyed).toEqual([
    ['events', true],
    ['events', false],
  ]);
});

it('a reload applies to the next request', async () => {
  await api.reload({ ...config, accounts: config.accounts.slice(0, 2) });
  expect((await read('/v1/accounts')).accounts).toHaveLength(2);
  await api.reload({ ...config, admin: undefined });
  expect(api.isOn).toBe(false);
});
