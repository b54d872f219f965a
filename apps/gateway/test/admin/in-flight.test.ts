/** S29: what operators are told about requests in flight. */
import { eventually } from 'headgate-testbed/raw-http';
import { held, startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { type AdminGateway, startAdminGateway } from '../support/admin.ts';

const ROUTE = 'GET /api/v1/chats';
const groups = { customer: 'cus_7' };

async function start(
  inFlight: { readonly own: number; readonly group: number },
  lane?: string,
): Promise<{
  readonly gateway: AdminGateway;
  explain(account: string): Promise<unknown>;
  run(account: string): Promise<() => Promise<unknown>>;
}> {
  const upstream = await startUpstream();
  const gateway = await startAdminGateway(upstream.url, {
    accounts: ['acc_1', 'acc_2'].map((id) => ({ id, application: 'app_1', groups })),
    routes: [{ route: ROUTE, account: 'query.account_id', lane }],
    limits: {
      default: { allMethods: { windows: ['100/1m'], inFlight: inFlight.own }, routes: { [ROUTE]: { inFlight: 90 } } },
      accounts: { acc_2: { allMethods: { inFlight: false } } },
      groups: { customer: { allMethods: { inFlight: inFlight.group } } },
      ...(lane !== undefined && { lanes: { [lane]: 0.5 } }),
    },
  });
  return {
    gateway,
    async explain(account) {
      const { text } = await gateway.admin('POST', '/v1/explain', { json: { account, route: ROUTE } });
      const { windows: _, ...told } = JSON.parse(text);
      return told;
    },
    async run(account) {
      const hold = held();
      upstream.behave(hold.behaviour);
      const reply = gateway.ask('GET', `/api/v1/chats?account_id=${account}`);
      await eventually(() => hold.waiting() === 1, 'the request runs');
      return () => {
        hold.release();
        return reply;
      };
    },
  };
}

const ROOM = { accepted: true, status: 200, rejectedBy: null, blocked: null, passesInMs: 0 };
const FULL = { accepted: false, status: 429, rejectedBy: null, blocked: null, passesInMs: null };

it('explain counts the requests in flight of the account', async () => {
  const { explain, run } = await start({ own: 1, group: 5 });
  expect(await explain('acc_1')).toEqual({ ...ROOM, inFlight: { running: 0, max: 1 } });
  const end = await run('acc_1');
  expect(await explain('acc_1')).toEqual({ ...FULL, inFlight: { running: 1, max: 1 } });
  await end();
  expect(await explain('acc_1')).toEqual({ ...ROOM, inFlight: { running: 0, max: 1 } });
});

it('S28: explain says the share of the lane of the route, of the account and of its groups', async () => {
  const { explain, run } = await start({ own: 2, group: 4 }, 'bulk');
  expect(await explain('acc_1')).toEqual({ ...ROOM, inFlight: { running: 0, max: 1 } });
  expect(await explain('acc_2')).toEqual({ ...ROOM, inFlight: { running: 0, max: 2, group: 'customer' } });
  const end = await run('acc_1');
  expect(await explain('acc_1')).toEqual({ ...FULL, inFlight: { running: 1, max: 1 } });
  await end();
});

it('explain and the windows count those of its groups', async () => {
  const { gateway, explain, run } = await start({ own: 5, group: 1 });
  const end = await run('acc_1');
  expect(await explain('acc_2')).toEqual({ ...FULL, inFlight: { running: 1, max: 1, group: 'customer' } });
  const { routes } = JSON.parse((await gateway.admin('GET', '/v1/windows?account=acc_1')).text);
  expect(routes[0]).toMatchObject({
    inFlight: { running: 1, max: 5 },
    groups: [{ account: 'group:customer:cus_7', inFlight: { running: 1, max: 1 }, windows: [] }],
  });
  await end();
});

it('the list has the most requests in flight of every layer, also without windows, and of groups', async () => {
  const { gateway } = await start({ own: 5, group: 1 });
  const { limits, groups } = JSON.parse((await gateway.admin('GET', '/v1/limits')).text);
  const shown = limits.map(({ target, base, inFlight }: Record<string, unknown>) => [target, base, inFlight]);
  expect(shown).toEqual([
    [{ account: 'acc_2' }, null, false],
    [{ route: ROUTE }, null, 90],
    [{}, ['100/1m'], 5],
  ]);
  expect(groups).toEqual([{ group: 'customer', limit: 'all-methods', route: null, windows: null, inFlight: 1 }]);
});
