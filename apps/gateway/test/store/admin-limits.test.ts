/** Gateways with one store obey what an operator changes at one of them. */

import { startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { type AdminGateway, startAdminGateway } from '../support/admin.ts';
import { ratesOf } from '../support/gateway.ts';
import { connectForFile, storeServerForFile } from '../support/store-server.ts';

const server = await storeServerForFile();
const program = await connectForFile(server);
const upstream = await startUpstream();
const config = {
  store: server.store(),
  limits: { default: { allMethods: ['1000/1m'] } },
};
const limitOf = async (gateway: AdminGateway) =>
  ratesOf(await gateway.ask('GET', '/api/v1/chats?account_id=acc_1')).limit;

it('PUT at one: the very next request at the other is judged by it, and so is a gateway that starts later', async () => {
  const [one, other] = await Promise.all(
    [1, 2].map(() => startAdminGateway(upstream.url, config)) as [Promise<AdminGateway>, Promise<AdminGateway>],
  );
  const path = '/v1/limit?account=acc_1&wait=applied';
  for (let round = 0; round < 5; round++) {
    const max = 500 + round;
    const [from, to] = round % 2 === 0 ? [one, other] : [other, one];
    const reply = await from.admin('PUT', path, { json: { windows: [`${max}/1m`] } });
    expect(JSON.parse(reply.text)).toMatchObject({ durable: true, applied: { instances: 2, of: 2, missing: [] } });
    expect([await limitOf(from), await limitOf(to)]).toEqual([max, max]);
  }
  const late = await startAdminGateway(upstream.url, config);
  expect(await limitOf(late)).toBe(504);
  await Promise.all([one, other, late].map((gateway) => gateway.stop()));
});

it('a block that another process has set: the windows and explain say it, and no other account has it', async () => {
  const gateway = await startAdminGateway(upstream.url, config);
  const route = 'GET /api/v1/chats';
  await program.limits.block({ account: 'acc_1' }, { forMs: 60_000, reason: 'Unpaid.' });
  const blocked = expect.objectContaining({ scope: 'account', forMs: expect.any(Number), reason: 'Unpaid.' });
  const windowsOf = async (account: string) =>
    JSON.parse((await gateway.admin('GET', `/v1/windows?account=${account}`)).text).routes;
  expect(await windowsOf('acc_1')).toContainEqual(expect.objectContaining({ route, blocked }));
  expect(await windowsOf('acc_2')).toContainEqual(expect.objectContaining({ route, blocked: null }));
  const explained = await gateway.admin('POST', '/v1/explain', { json: { account: 'acc_1', route } });
  expect(JSON.parse(explained.text)).toMatchObject({ accepted: false, rejectedBy: null, blocked });
  await gateway.stop();
});

it('16 operators at two gateways with the same etag: one wins', async () => {
  const gateways = await Promise.all([
    startAdminGateway(upstream.url, config),
    startAdminGateway(upstream.url, config),
  ]);
  const replies = await Promise.all(
    Array.from({ length: 16 }, (_, i) =>
      (gateways[i % 2] as AdminGateway).admin('PUT', '/v1/limit?account=acc_2', {
        json: { windows: [`${600 + i}/1m`] },
        headers: { 'if-match': '"0"' },
      }),
    ),
  );
  expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(15).fill(412)]);
  const history = await gateways[0].admin('GET', '/v1/limits/history?account=acc_2');
  expect(JSON.parse(history.text).entries).toHaveLength(1);
  await Promise.all(gateways.map((gateway) => gateway.stop()));
});

it('while the store does not answer, a change is 503 within the deadline, and the last known limits hold', async () => {
  const gateway = await startAdminGateway(upstream.url, config);
  await gateway.admin('PUT', '/v1/limit?account=acc_1', { json: { windows: ['700/1m'] } });
  server.freeze();
  const from = performance.now();
  const reply = await gateway.admin('PUT', '/v1/limit?account=acc_1', { json: { windows: ['701/1m'] } });
  expect(reply.status).toBe(503);
  expect(performance.now() - from).toBeLessThan(2_000);
  expect((await gateway.ask('GET', '/api/v1/chats?account_id=acc_1')).status).toBe(200);
  server.thaw();
  await gateway.stop();
});
