/** Two gateways that lease from one store never admit more than the limit, and show what they leased. */
import { eventually } from 'headgate-testbed/raw-http';
import { startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { type AdminGateway, startAdminGateway } from '../support/admin.ts';
import { storeServerForFile } from '../support/store-server.ts';

const server = await storeServerForFile();
const upstream = await startUpstream();
const MAX = 400;

/** Long deadlines, because a busy machine must not cause a degraded decision. */
const start = (): Promise<AdminGateway> =>
  startAdminGateway(upstream.url, {
    store: server.store(),
    storeDeadlineMs: 10_000,
    leases: { leaseMs: 500 },
    accounts: ['busy', 'blocked'].map((id) => ({ id, application: 'app_1', provider: 'mock' })),
    limits: { default: { allMethods: [`${MAX}/1h`] } },
  });
const statusAt = async (gateway: AdminGateway, account: string) =>
  (await gateway.ask('GET', `/api/v1/chats?account_id=${account}`)).status;
const leasesOf = async (gateway: AdminGateway) => JSON.parse((await gateway.admin('GET', '/v1/status')).text).leases;
const remainingAt = async (gateway: AdminGateway) => {
  const { routes } = JSON.parse((await gateway.admin('GET', '/v1/windows?account=busy')).text);
  return routes[0].windows[0].remaining;
};

it('S32: two gateways lease, count together, and give back what they did not use', async () => {
  const [one, other] = await Promise.all([start(), start()]);
  let sent = 0;
  for (let round = 0; round < 10; round++) {
    const statuses = await Promise.all(
      [one, other].flatMap((each) => Array.from({ length: 10 }, () => statusAt(each, 'busy'))),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
    sent += statuses.length;
  }
  const figures = await Promise.all([leasesOf(one), leasesOf(other)]);
  for (const { decisions, leased, used, givenBack, lost, held } of figures) {
    expect(decisions).toBeGreaterThan(0);
    expect([leased, lost]).toEqual([used + givenBack + held, 0]);
  }
  const text = (await one.admin('GET', '/metrics')).text;
  expect(text).toMatch(/^headgate_leases_decisions_total [1-9]/m);
  await other.stop();
  // Without a crash nothing stays charged that no request took.
  await eventually(async () => (await remainingAt(one)) === MAX - sent, 'the units went back');
  let accepted = sent;
  while (accepted <= MAX && (await statusAt(one, 'busy')) === 200) accepted++;
  expect(accepted).toBe(MAX);
  await one.stop();
});

it('a block at one gateway ends the leases of the other when they end', async () => {
  const [one, other] = await Promise.all([start(), start()]);
  for (let i = 0; i < 30; i++) expect(await statusAt(other, 'blocked')).toBe(200);
  await one.admin('PUT', '/v1/block?account=blocked', { json: { forMs: 60_000 } });
  expect(await statusAt(one, 'blocked')).toBe(429);
  await eventually(async () => (await statusAt(other, 'blocked')) === 429, 'the block holds at the other');
  await Promise.all([one.stop(), other.stop()]);
});
