/** Per limit name the most specific layer wins: account, then provider, then default. */
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, NO_RATES, ratesOf, startGateway } from '../support/gateway.ts';

const account = (id: string, provider: string) => ({ id, application: 'app_1', provider });

const { upstream, gateway } = await gatewayForFile(configOf, {
  accounts: [
    account('plain', 'imap'),
    account('linked', 'linkedin'),
    account('own_route', 'linkedin'),
    account('own_all', 'linkedin'),
    account('none', 'linkedin'),
    account('no_route', 'linkedin'),
    account('no_all', 'linkedin'),
    account('homemade', 'our-own-provider'),
    account('pooled', 'one-count'),
  ],
  limits: {
    default: { allMethods: ['60/1m'], routes: { 'GET /api/v1/chats': ['50/1s'] } },
    providers: {
      linkedin: { allMethods: ['30/1m'], routes: { 'GET /api/v1/chats': ['20/1s'] } },
      'our-own-provider': { allMethods: ['77/1m'] },
      'one-count': { allMethods: { windows: ['3/1m'], scope: 'account' } },
    },
    accounts: {
      own_route: { routes: { 'GET /api/v1/chats': ['0/1s'] } },
      own_all: { allMethods: ['5/1m'] },
      none: { allMethods: [], routes: { 'GET /api/v1/chats': [] } },
      no_route: { routes: { 'GET /api/v1/chats': [] } },
      no_all: { allMethods: [] },
    },
  },
});

const limitOf = async (id: string, method = 'GET') =>
  ratesOf(await gateway.ask(method, `/api/v1/chats?account_id=${id}`)).limit;

describe('layers of limits', () => {
  it.each([
    ['the default, if neither provider nor account has a limit', 'plain', 60],
    ['the provider over the default', 'linked', 30],
    ['the account over the provider', 'own_all', 5],
    ["an account's route limit, together with the provider's limit for all methods", 'own_route', 0],
    ['a provider with a made-up name', 'homemade', 77],
    ['[] for a route: only the limit for all methods', 'no_route', 30],
    ["[] for all methods: only the route's limit", 'no_all', 20],
    ['[] for both: no limit, no header', 'none', undefined],
  ])('%s', async (_title, id, limit) => {
    expect(await limitOf(id)).toBe(limit);
  });

  it('a layer with one route does not change another', async () => {
    expect(await limitOf('own_route', 'POST')).toBe(30);
    expect(await limitOf('own_all', 'POST')).toBe(5);
    expect(await limitOf('no_all', 'POST')).toBeUndefined();
  });

  it("S1: with the scope `account` the account's routes share one count", async () => {
    const asked = ['GET', 'POST', 'GET', 'POST'].map(
      (method) => () => gateway.ask(method, '/api/v1/chats?account_id=pooled'),
    );
    const replies = [];
    for (const ask of asked) replies.push(await ask());
    expect(replies.map((reply) => [reply.status, ratesOf(reply).remaining])).toEqual([
      [200, 2],
      [200, 1],
      [200, 0],
      [429, 0],
    ]);
  });

  it('a route without an account is not limited, but needs a key', async () => {
    const open = await gateway.ask('GET', '/api/v1/open');
    expect({ status: open.status, ...ratesOf(open) }).toEqual({ status: 200, ...NO_RATES });
    expect((await gateway.ask('GET', '/api/v1/open', { 'x-api-key': undefined })).status).toBe(401);
  });
});

describe('the config key `headers`', () => {
  it('`headers: none` shows no x-ratelimit, and still limits', async () => {
    const silent = await startGateway(
      configOf(upstream.url, { headers: [], limits: { default: { allMethods: ['1/1m'] } } }),
    );
    const [first, second] = [
      await silent.ask('GET', '/api/v1/chats?account_id=acc_1'),
      await silent.ask('GET', '/api/v1/chats?account_id=acc_1'),
    ];
    expect([first.status, second.status]).toEqual([200, 429]);
    expect(Object.keys(second.headers).filter((name) => name.includes('ratelimit'))).toEqual([]);
    await silent.stop();
  });

  it('`headers` with both styles shows the IETF fields beside ours; `ietf` shows them alone', async () => {
    for (const [style, ours] of [
      [['x-ratelimit', 'ietf'], true],
      ['ietf', false],
      [['ietf'], false],
    ] as const) {
      const styled = await startGateway(configOf(upstream.url, { headers: style }));
      const { headers } = await styled.ask('GET', '/api/v1/chats?account_id=acc_1');
      expect(headers).toMatchObject({ ratelimit: expect.any(String), 'ratelimit-policy': expect.any(String) });
      expect(headers['x-ratelimit-limit'] !== undefined).toBe(ours);
      await styled.stop();
    }
  });
});
