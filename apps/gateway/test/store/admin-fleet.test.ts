/** What one gateway knows of the others with the same store. */
import { hostname } from 'node:os';
import { createSharedLimits } from 'headgate/shared-limits';
import { eventually } from 'headgate-testbed/raw-http';
import { startUpstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AdminGateway, startAdminGateway } from '../support/admin.ts';
import { configOf } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process.ts';
import { storeServerForFile } from '../support/store-server.ts';

const server = await storeServerForFile();
const program = await server.connect();
const upstream = await startUpstream();
const CHATS = 'GET /api/v1/chats';
const limits = { default: { allMethods: ['3/1h'] } };
// Heartbeats come with every fourth reading.
const config = { store: server.store(), limits, adjustments: { refreshMs: 100 } };
let one: AdminGateway;
let other: AdminGateway;

beforeAll(async () => {
  [one, other] = await Promise.all([startAdminGateway(upstream.url, config), startAdminGateway(upstream.url, config)]);
});
afterAll(() => program.disconnect());

const read = async (gateway: AdminGateway, path: string) =>
  JSON.parse((await gateway.admin('GET', path, { as: 'viewer' })).text);
const chats = async (gateway: AdminGateway, account: string, times: number) => {
  for (let i = 0; i < times; i++) await gateway.ask('GET', `/api/v1/chats?account_id=${account}`);
};

it('the accounts at the top of both; a preview says what they have really used', async () => {
  await chats(one, 'acc_1', 5);
  await chats(other, 'acc_1', 2);
  await chats(other, 'acc_2', 4);
  const top = await eventually(async () => {
    const found = await read(one, '/v1/top?by=rejected&fleet=true');
    // The two accounts can be in two heartbeats.
    return found.accounts[0]?.count === 4 && found.accounts.length === 2 && found;
  }, 'the heartbeat of the other');
  expect(top).toMatchObject({
    exact: true,
    processes: { counted: 2, of: 2 },
    accounts: [
      { account: 'acc_1', count: 4, error: 0, missing: 0, route: CHATS, tightest: { used: 3, max: 3 } },
      { account: 'acc_2', count: 1, missing: 0 },
    ],
  });
  expect((await read(one, '/v1/top?by=rejected')).accounts).toMatchObject([{ account: 'acc_1', count: 2 }]);
  const reply = await one.admin('PUT', '/v1/limit?dryRun=true', { json: { windows: ['2/1h'] } });
  // Only what this process has seen; what they have used is that of all.
  expect(JSON.parse(reply.text)).toMatchObject({
    accounts: { affected: 1 },
    now: [{ account: 'acc_1', route: CHATS, used: 3, max: 2, wouldReject: true }],
  });
});

it('the processes: each with its own state, also a program and a gateway without an Admin API', async () => {
  const library = createSharedLimits({ base: limits, adjustments: program.adjustments, logger: false });
  const plain = await startInProcess(configOf(upstream.url, config));
  await other.admin('POST', '/v1/drain', { json: {} });
  await chats(one, 'acc_3', 3);
  const { instances } = await eventually(async () => {
    const found = await read(one, '/v1/instances');
    return found.instances.some(({ state }: { state: string }) => state === 'draining') && found;
  }, 'the heartbeat of the other');
  const said = { host: hostname(), startedAt: expect.stringMatching(/Z$/), version: expect.any(String) };
  const byState = (state: string | null, counts: boolean) =>
    instances.find(
      (each: { state: string; decisionsPerSecond: number | null }) =>
        each.state === state && (each.decisionsPerSecond !== null) === counts,
    );
  expect(instances).toHaveLength(4);
  expect(instances.find(({ self }: { self: boolean }) => self)).toMatchObject({ ...said, state: 'serving' });
  expect(byState('draining', true)).toMatchObject({ ...said, breaker: 'closed', self: false, revision: '0' });
  expect(byState('serving', false)).toMatchObject({ ...said, breaker: 'closed', self: false });
  expect(byState(null, false)).toMatchObject({ version: null, host: null, startedAt: null, breaker: null });
  expect((await read(one, '/v1/top?fleet=true')).processes).toEqual({ counted: 2, of: 4 });
  await Promise.all([library.close(), plain.stop()]);
});

it('what another program writes into the store breaks nothing', async () => {
  await program.spoilDetails();
  expect((await one.admin('GET', '/v1/instances', { as: 'viewer' })).status).toBe(200);
  expect((await one.admin('GET', '/v1/top?fleet=true', { as: 'viewer' })).status).toBe(200);
});

it('while the store does not answer, the fleet is 503, and the figures of the process itself are not', async () => {
  server.freeze();
  const [fleet, own] = await Promise.all(
    ['/v1/top?fleet=true', '/v1/top'].map((path) => one.admin('GET', path, { as: 'viewer' })),
  );
  server.thaw();
  expect([fleet?.status, own?.status]).toEqual([503, 200]);
  await Promise.all([one.stop(), other.stop()]);
});
