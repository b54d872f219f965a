/** S30 and S16: an upstream that refuses requests pauses their account, and what a client gets of its 429. */
import { eventually } from 'headgate-testbed/raw-http';
import { answer, startUpstream } from 'headgate-testbed/upstream';
import { beforeEach, describe, expect, it } from 'vitest';
import { startAdminGateway } from '../support/admin.ts';
import { checkConfig } from '../support/check-config.ts';
import { configOf, expectProblem, NO_RATES, ratesOf } from '../support/gateway.ts';

const THEIRS = {
  'retry-after': '30',
  'x-ratelimit-limit': '5',
  'ratelimit-policy': '"theirs";q=5',
  'anthropic-ratelimit-tokens-remaining': '0',
};
const chats = (account: number) => `/api/v1/chats?account_id=acc_${account}`;
const upstream = await startUpstream();
const pausing = await startAdminGateway('http://127.0.0.1:1', {
  upstream: { url: upstream.url, cooldown: { maxMs: 20_000, statuses: [429, 529] } },
  upstreams: {
    plain: upstream.url,
    passing: { url: upstream.url, cooldown: { scope: 'account' }, providerAnswers: 'pass' },
  },
  routes: [
    { route: 'GET /api/v1/chats', account: 'query.account_id' },
    { route: 'GET /plain', account: 'query.account_id', upstream: 'plain' },
    { route: 'GET /passing', account: 'query.account_id', upstream: 'passing' },
  ],
});
const calls = () => upstream.seen.length;

beforeEach(() => {
  upstream.reset();
  upstream.behave(answer({ status: 429, headers: THEIRS, body: 'slow down' }));
});

describe('an upstream with cooldown', () => {
  it('S30: answers 429 once; its account and route are paused until then, and it gets no request', async () => {
    const refused = await pausing.ask('GET', chats(1));
    expectProblem(refused, 429, 'provider/too_many_requests');
    expect(ratesOf(refused)).toEqual({ ...NO_RATES, retryAfter: 30 });
    expect(refused.headers['anthropic-ratelimit-tokens-remaining']).toBe('0');
    expect(refused.headers).not.toHaveProperty('ratelimit-policy');
    upstream.behave(answer());
    const paused = await pausing.ask('GET', chats(1));
    const { detail } = expectProblem(paused, 429, 'provider/too_many_requests');
    expect(detail).toBe('The provider takes no more requests of this account now; retry in 20 s.');
    expect([ratesOf(paused), calls()]).toEqual([{ ...NO_RATES, retryAfter: 20 }, 1]);
    expect((await pausing.ask('GET', chats(2))).status).toBe(200);
    expect((await pausing.ask('GET', '/plain?account_id=acc_1')).status).toBe(200);
    expect(await pausing.metrics()).toContain('headgate_cooldowns_total{route="GET /api/v1/chats",state="started"} 1');
  });

  it('S30: an operator sees the pause as a block, with its reason, and can lift it', async () => {
    await pausing.ask('GET', chats(3));
    const block = `/v1/block?account=acc_3&route=${encodeURIComponent('GET /api/v1/chats')}`;
    const shown = await pausing.admin('GET', block);
    expect(JSON.parse(shown.text)).toMatchObject({ blocked: { reason: 'provider', scope: 'route' } });
    upstream.behave(answer());
    expect((await pausing.admin('DELETE', `${block}&reason=x`)).status).toBe(200);
    expect((await pausing.ask('GET', chats(3))).status).toBe(200);
  });

  it('S30: other statuses of the config, and a 503 with retry-after, pass as they are and pause, too', async () => {
    for (const [account, status] of [
      [4, 529],
      [5, 503],
    ] as const) {
      upstream.behave(answer({ status, headers: { 'retry-after': '9' }, body: 'busy' }));
      const reply = await pausing.ask('GET', chats(account));
      expect([reply.status, reply.text, reply.headers['retry-after']]).toEqual([status, 'busy', '9']);
      const paused = await pausing.ask('GET', chats(account));
      expectProblem(paused, 429, 'provider/too_many_requests');
      expect(ratesOf(paused).retryAfter).toBe(9);
    }
    upstream.behave(answer({ status: 503 }));
    expect((await pausing.ask('GET', chats(6))).status).toBe(503);
    expect((await pausing.ask('GET', chats(6))).status).toBe(503);
  });

  it('S30: after the pause the first request ends it, once the upstream accepted it', async () => {
    upstream.behave(answer({ status: 429, headers: { 'retry-after': '1' } }));
    await pausing.ask('GET', chats(7));
    upstream.behave(answer());
    await eventually(async () => (await pausing.ask('GET', chats(7))).status === 200, 'the end of the pause', 5_000);
    expect((await pausing.ask('GET', chats(7))).status).toBe(200);
    expect(await pausing.metrics()).toMatch(
      /^headgate_cooldowns_total\{route="GET \/api\/v1\/chats",state="ended"\} [1-9]/m,
    );
  });
});

describe('providerAnswers: pass', () => {
  it('S16: the 429 is passed on as it is, and pauses with the scope of its upstream', async () => {
    const reply = await pausing.ask('GET', '/passing?account_id=acc_8');
    expect([reply.status, reply.text]).toEqual([429, 'slow down']);
    expect(reply.headers).toMatchObject(THEIRS);
    const paused = await pausing.ask('GET', chats(8));
    expectProblem(paused, 429, 'provider/too_many_requests');
    expect(calls()).toBe(1);
  });
});

describe('the scope provider', () => {
  const shared = (providerGroup: object) => ({
    upstream: { url: upstream.url, cooldown: { scope: 'provider' } },
    accounts: ['linkedin', 'linkedin', 'twitter', undefined].map((provider, i) => ({
      id: `acc_${i + 1}`,
      application: 'app_1',
      ...(provider && { provider }),
    })),
    routes: [
      { route: 'GET /api/v1/chats', account: 'query.account_id' },
      { route: 'GET /api/v1/emails', account: 'query.account_id' },
    ],
    limits: { default: { allMethods: ['100/1m'] }, groups: providerGroup },
  });

  it('S30: pauses every account of the provider on every route, and no other account', async () => {
    const groups = { provider: { allMethods: ['1000/1m'] } };
    const gateway = await startAdminGateway('http://127.0.0.1:1', shared(groups));
    const statusOf = async (path: string) => (await gateway.ask('GET', path)).status;
    expectProblem(await gateway.ask('GET', chats(1)), 429, 'provider/too_many_requests');
    upstream.behave(answer());
    const paused = await gateway.ask('GET', '/api/v1/emails?account_id=acc_2');
    expectProblem(paused, 429, 'provider/too_many_requests');
    expect(ratesOf(paused)).toEqual({ ...NO_RATES, retryAfter: 30 });
    expect([await statusOf(chats(3)), await statusOf(chats(4)), calls()]).toEqual([200, 200, 3]);
    const block = await gateway.admin('GET', '/v1/block?account=group:provider:linkedin');
    expect(JSON.parse(block.text)).toMatchObject({ blocked: { reason: 'provider' } });
  });

  it.each([
    ['no such group', {}],
    ['a group without a limit of all methods', { provider: { routes: { 'GET /api/v1/chats': ['9/1m'] } } }],
  ])('S30: is a fault with %s, because it would pause nothing', async (_what, groups) => {
    const { code, all } = await checkConfig(configOf('', shared(groups)));
    expect(code).toBe(2);
    expect(all).toContain(
      'upstream.cooldown.scope: needs limits.groups.provider with a limit of all methods, such as { "allMethods": ',
    );
  });
});
