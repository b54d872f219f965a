/** S31: groups of accounts, API keys and routes. */
import { startUpstream } from 'headgate-testbed/upstream';
import { beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, askAdmin } from './support/admin.ts';
import { checkConfig } from './support/check-config.ts';
import { type DecidingGateway, startDeciding } from './support/decisions.ts';
import { ratesOf } from './support/gateway.ts';

const KEYS = [
  { name: 'one', token: 'token-of-the-first-key', application: 'app', groups: { team: 'blue' } },
  { name: 'two', token: 'token-of-the-second-key', application: 'app' },
];
const ACCOUNTS = [
  { id: 'acc_1', application: 'app', groups: { customer: 'cus_7' } },
  { id: 'acc_2', application: 'app', groups: { customer: 'cus_7', team: 'red' } },
  { id: 'acc_3', application: 'app' },
];
const ROUTES = [
  { route: 'POST /send', account: 'header.x-account' },
  { route: 'POST /mail', account: 'header.x-account', groups: { upstream: 'mail', team: 'green' } },
];
const shared = (...windows: string[]) => ({ allMethods: { windows, scope: 'account' } });
const LIMITS = {
  default: shared('50/1h'),
  groups: { customer: shared('3/1h'), team: shared('9/1h'), upstream: shared('2/1h') },
};
const CUSTOMER = 'group:customer:cus_7';
const [ONE, TWO] = KEYS.map(({ token }) => token) as [string, string];

describe('a gateway with groups', () => {
  let gateway: DecidingGateway;
  const ask = (path: string, account: string, token = TWO) =>
    gateway.ask('POST', path, { 'x-api-key': token, 'x-account': account });
  const admin = async (method: string, path: string, json?: object) => {
    const reply = await askAdmin(gateway.adminPort, method, path, json === undefined ? {} : { json });
    return { status: reply.status, ...(reply.text === '' ? {} : JSON.parse(reply.text)) };
  };
  const used = async (account: string) => {
    const { routes } = await admin('GET', `/v1/windows?account=${encodeURIComponent(account)}&route=POST%20%2Fsend`);
    return routes[0].windows.map((window: { used: number }) => window.used);
  };

  beforeAll(async () => {
    const { url } = await startUpstream();
    const config = { admin: ADMIN, keys: KEYS, accounts: ACCOUNTS, routes: ROUTES, limits: LIMITS };
    gateway = await startDeciding({ upstream: url, ...config, log: { account: true } });
  });

  it('accounts of one customer share its windows; the answer shows and names the group that rejects, and no id', async () => {
    const statuses: number[] = [];
    for (const account of ['acc_1', 'acc_2', 'acc_1']) statuses.push((await ask('/send', account)).status);
    expect(statuses).toEqual([200, 200, 200]);
    const rejected = await ask('/send', 'acc_2');
    expect([rejected.status, ratesOf(rejected)]).toMatchObject([429, { limit: 3, remaining: 0 }]);
    expect(JSON.parse(rejected.text).detail).toBe('The rate limit of the group customer is used up; retry in 3600 s.');
    expect(rejected.text + JSON.stringify(rejected.headers)).not.toContain('cus_7');
    const id = rejected.headers['x-request-id'];
    await expect
      .poll(() => gateway.lines().find(({ req_id }) => req_id === id))
      .toMatchObject({ decision: 'rejected', groups: { customer: 'cus_7', team: 'red' }, order: expect.any(Number) });
    expect([await used('acc_1'), await used('acc_2'), await used(CUSTOMER)]).toEqual([[2], [1], [3]]);
    expect((await ask('/send', 'acc_3')).status).toBe(200);
  });

  it('of two ids of a group the account wins, then the key, then the route', async () => {
    const team = (name: string) => used(`group:team:${name}`);
    const before = [await team('red'), await team('blue'), await team('green')];
    await admin('POST', '/v1/windows/reset', { account: CUSTOMER, reason: 'a test' });
    await ask('/mail', 'acc_2', ONE);
    await ask('/mail', 'acc_3', ONE);
    expect((await ask('/mail', 'acc_3', TWO)).status).toBe(429);
    await admin('POST', '/v1/windows/reset', { account: 'group:upstream:mail', reason: 'a test' });
    expect((await ask('/mail', 'acc_3', TWO)).status).toBe(200);
    const after = [await team('red'), await team('blue'), await team('green')];
    expect(after.map(([count], i) => count - before[i][0])).toEqual([1, 1, 1]);
  });

  it('a question for a decision counts for the same groups, and peeks show whose windows they are', async () => {
    await admin('POST', '/v1/windows/reset', { account: CUSTOMER, reason: 'a test' });
    const body = { route: 'POST /send', account: 'acc_1' };
    const headers = { 'x-api-key': TWO };
    const decided = await gateway.decide('/v1/decisions', { ...body, cost: 2 }, headers);
    expect(decided.value.windows).toMatchObject([{ max: 50 }, { max: 3, used: 2, group: 'customer' }]);
    expect((await gateway.decide('/v1/decisions', { ...body, cost: 2 }, headers)).status).toBe(429);
    const peeked = await gateway.decide('/v1/decisions/peek', body, headers);
    expect(peeked.value.windows).toMatchObject([{ max: 50 }, { max: 3, used: 2, group: 'customer' }]);
  });

  it('operators block, adjust and list a group as an account; metrics, traces and the log name what rejected', async () => {
    const at = `account=${CUSTOMER}&route=POST%20%2Fsend`;
    expect((await admin('GET', `/v1/effective?${at}`)).limits).toMatchObject([{ from: 'group', windows: ['3/1h'] }]);
    const limit = await admin('PUT', `/v1/limit?account=${CUSTOMER}`, { windows: ['2/1h'], reason: 'late payment' });
    expect(limit).toMatchObject({ status: 200, effective: ['2/1h'] });
    expect((await admin('GET', `/v1/effective?${at}`)).limits).toMatchObject([
      { from: 'account', windows: ['2/1h'], hides: [{ from: 'group', windows: ['3/1h'] }] },
    ]);
    const explained = await admin('POST', '/v1/explain', { route: 'POST /send', account: 'acc_1' });
    expect(explained).toMatchObject({ accepted: false, rejectedBy: { max: 2, group: 'customer' } });
    const { groups } = (await admin('GET', '/v1/windows?account=acc_1&route=POST%20%2Fsend')).routes[0];
    const [{ windows, ...rest }] = groups;
    expect([groups.length, rest]).toEqual([1, { group: 'customer', account: CUSTOMER, blocked: null, inFlight: null }]);
    expect(windows).toMatchObject([{ max: 2, remaining: 0, group: 'customer', from: 'account', adjusted: true }]);
    // A group is in no other group, whatever the route says.
    const ofGroup = await admin('GET', `/v1/windows?account=${CUSTOMER}&route=POST%20%2Fmail`);
    expect(ofGroup.routes[0].groups).toEqual([]);
    const listed = { limit: 'all-methods', route: null, inFlight: null };
    expect((await admin('GET', '/v1/limits')).groups).toEqual([
      { group: 'customer', ...listed, windows: ['3/1h'] },
      { group: 'team', ...listed, windows: ['9/1h'] },
      { group: 'upstream', ...listed, windows: ['2/1h'] },
    ]);
    expect((await admin('GET', '/v1/limits?layer=default')).groups).toEqual([]);
    await admin('PUT', `/v1/block?account=${CUSTOMER}`, { forMs: 60_000, reason: 'unpaid' });
    expect(await admin('POST', '/v1/explain', { route: 'POST /send', account: 'acc_1' })).toMatchObject({
      blocked: { scope: 'group', reason: 'unpaid' },
    });
    const blocked = await ask('/send', 'acc_1');
    expect(JSON.parse(blocked.text).detail).toMatch(
      /^Requests like this one are blocked for the group customer; retry in /,
    );
    const trace = await admin('GET', `/v1/decisions?req_id=${blocked.headers['x-request-id']}`);
    expect(trace).toMatchObject({ account: 'acc_1', group: 'customer', outcome: 'rejected' });
    const top = await admin('GET', '/v1/top?by=rejected');
    expect(JSON.stringify(top)).toContain(CUSTOMER);
    expect(await gateway.metrics()).toMatch(
      /^headgate_group_rejections_total\{route="POST \/send",group="customer"\} \d+$/m,
    );
  });
});

describe('a config with groups', () => {
  const check = (config: object) =>
    checkConfig({ keys: KEYS, accounts: ACCOUNTS, routes: ROUTES, limits: LIMITS, ...config });

  it('a group that limits.groups does not have is a fault; that of a key is not shown', async () => {
    const { code, all } = await check({
      limits: {
        default: LIMITS.default,
        groups: { customer: LIMITS.groups.customer, upstream: LIMITS.groups.upstream },
      },
      accounts: [{ id: 'acc_1', application: 'app', groups: { custmer: 'cus_7' } }],
    });
    expect(code).toBe(2);
    expect(all).toContain('accounts[0].groups.custmer: limits.groups has no "custmer", did you mean "customer"?');
    expect(all).toContain('keys[0].groups: limits.groups has no such group: customer, upstream');
    expect(all).toContain('routes[1].groups.team: limits.groups has no "team"');
  });

  it.each([
    [{ 'a:b': {} }, 'limits.groups["a:b"]: must be 1 to 32 letters, digits, _ and -'],
    [{ a: {}, b: {}, c: {}, d: {}, e: {} }, 'limits.groups: must have at most 4 groups'],
    [
      { customer: { allMethods: ['5/1m', '6/1m'] } },
      'limits.groups.customer.allMethods: two windows of one limit need',
    ],
    [{ customer: { routes: { 'GET /x': ['5/1m'] } } }, 'limits.groups.customer.routes["GET /x"]: the file has no such'],
  ])('%j is a fault', async (groups, fault) => {
    const { code, all } = await check({ limits: { default: LIMITS.default, groups } });
    expect([code, all]).toEqual([2, expect.stringContaining(fault)]);
  });

  it('an account may not have the id of a group, and its own limits name one of the file', async () => {
    const accounts = [{ id: CUSTOMER, application: 'app' }];
    expect((await check({ accounts })).all).toContain(
      'accounts[0].id: must not begin with group:, because such ids are of',
    );
    const of = (id: string) => check({ limits: { ...LIMITS, accounts: { [id]: shared('7/1h') } } });
    expect((await of(CUSTOMER)).code).toBe(0);
    expect((await of('group:customer:cus_8')).all).toContain('the file has no such account');
  });

  it('a group in which no request is, is a warning', async () => {
    const { code, all } = await check({ limits: { ...LIMITS, groups: { ...LIMITS.groups, idle: shared('1/1h') } } });
    expect([code, all]).toEqual([
      0,
      expect.stringContaining('limits.groups.idle: no account, no key and no route names'),
    ]);
  });

  it('S33: a group that counts nothing of what a route costs is a warning, because each request gets a 500', async () => {
    const groups = { ...LIMITS.groups, upstream: shared('900 tokens/1h') };
    const { code, all } = await check({ limits: { ...LIMITS, groups } });
    const warning = 'no window of limits.groups.upstream counts what a request costs';
    expect([code, all]).toEqual([0, expect.stringContaining(`routes[1]: ${warning}`)]);
    expect(all).not.toContain(`routes[0]: ${warning}`);
    const routes = [ROUTES[0], { ...ROUTES[1], cost: { requests: 1, tokens: 8 } }];
    expect((await check({ routes, limits: { ...LIMITS, groups } })).all).not.toContain(warning);
  });
});
