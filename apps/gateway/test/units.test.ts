/** S33: windows that count another unit than requests, in the whole process. */
import { send } from 'headgate-testbed/raw-http';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkConfig } from '../src/config/config.ts';
import { warningsFor } from '../src/config/warnings.ts';
import { ADMIN, askAdmin } from './support/admin.ts';
import { type DecidingGateway, startDeciding } from './support/decisions.ts';
import { expectProblem, sha256, TOKEN } from './support/gateway.ts';

const CHAT = 'POST /chat';
const SERVICE = 'service-of-1';
const LIMITS = { default: { allMethods: { windows: ['5/1h', '1000 tokens/1h'], scope: 'account' } } };
const ROUTES = [
  { route: CHAT, account: 'query.id', cost: { requests: 1, tokens: 400 }, finalCost: { tokens: 'x-tokens-used' } },
  { route: 'GET /models', account: 'query.id' },
];
/** What every config of this file says. */
const COMMON = {
  admin: ADMIN,
  log: { level: 'info', account: true },
  headers: ['x-ratelimit', 'ietf'],
  keys: [
    { sha256: sha256(TOKEN), name: 'first', application: 'app_1' },
    { token: SERVICE, application: 'app_1', role: 'service' },
  ],
  accounts: Array.from({ length: 9 }, (_, i) => ({ id: `acc_${i}`, application: 'app_1' })),
  clientAddress: { trustedProxies: ['127.0.0.1'] },
};
let gateway: DecidingGateway;
let upstream: Upstream;
/** What the upstream says that the next request used. */
let used: string | undefined;

beforeAll(async () => {
  upstream = await startUpstream(async (seen, response) => {
    await seen.whole;
    response.writeHead(200, used === undefined ? {} : { 'X-Tokens-Used': used });
    response.end('{}');
  });
  gateway = await startDeciding({ ...COMMON, upstream: upstream.url, routes: ROUTES, limits: LIMITS });
});

const chat = (id: string) => gateway.ask('POST', `/chat?id=${id}`);
const decide = (json: object) => gateway.decide('/v1/decisions', json);
const tokensLeft = async (account: string) => {
  const { value } = await gateway.decide('/v1/decisions/peek', { route: CHAT, account });
  return (value.windows as { remaining: number }[]).map(({ remaining }) => remaining);
};

describe('a proxied request', () => {
  it('is charged what the route costs, and what the upstream says in the end', async () => {
    used = '150';
    const reply = await chat('acc_0');
    expect(reply.status).toBe(200);
    expect(reply.headers['ratelimit-policy']).toBe(
      '"all-methods-1h";q=5;w=3600, "all-methods-tokens-1h";q=1000;qu="tokens";w=3600',
    );
    expect(reply.headers.ratelimit).toContain('"all-methods-tokens-1h";r=600;t=3600');
    expect(reply.headers['x-ratelimit-remaining']).toBe('4');
    await expect.poll(() => tokensLeft('acc_0')).toEqual([4, 850]);
  });

  it.each([undefined, '', '-5', '1.5', 'many', '99999999999999999999'])(
    'keeps the charge if the field says %j',
    async (field) => {
      used = field;
      await gateway.gateway.reload(checkConfig(configWith(LIMITS), 'test'));
      const account = 'acc_1';
      const [, before] = await tokensLeft(account);
      await chat(account);
      expect((await tokensLeft(account))[1]).toBe(Math.max((before as number) - 400, (before as number) % 400));
      await askAdmin(gateway.adminPort, 'POST', '/v1/reset', { json: { account } });
    },
  );

  it('is rejected by the unit that is used up, and the answer names it; other routes go on', async () => {
    used = '900';
    await chat('acc_2');
    await expect.poll(() => tokensLeft('acc_2')).toEqual([4, 100]);
    const problem = expectProblem(await chat('acc_2'), 429, 'api/too_many_requests');
    expect(problem.detail).toMatch(/^The rate limit of tokens has not enough left for this request; retry in \d+ s\.$/);
    expect(await tokensLeft('acc_2')).toEqual([4, 100]);
    expect((await gateway.ask('GET', '/models?id=acc_2')).status).toBe(200);
  });

  it('S11: says which unit can never fit', async () => {
    const reply = await decide({ route: CHAT, account: 'acc_3', cost: { requests: 1, tokens: 1_001 } });
    const problem = expectProblem(reply, 422, 'api/cost_exceeds_limit');
    expect(problem.detail).toBe('The request costs more than this limit of tokens ever allows; waiting does not help.');
  });
});

describe('the decision API', () => {
  it('takes a cost per unit, by default that of the route, and settles one unit', async () => {
    const first = await decide({ route: CHAT, account: 'acc_4', cost: { requests: 1, tokens: 700 } });
    expect(first.value).toMatchObject({ outcome: 'accepted' });
    expect(first.value.windows.map((each: { unit?: string; used: number }) => [each.unit, each.used])).toEqual([
      [undefined, 1],
      ['tokens', 700],
    ]);
    const settle = (cost: unknown) =>
      gateway.decide('/v1/decisions/settle', { receipt: first.value.receipt, cost }, { 'x-api-key': SERVICE });
    expect((await settle({ tokens: 300 })).value).toEqual({ changed: true });
    expect((await settle({ tokens: 5 })).value).toEqual({ changed: false });
    expect(await tokensLeft('acc_4')).toEqual([4, 700]);
    await decide({ route: CHAT, account: 'acc_4' });
    expect(await tokensLeft('acc_4')).toEqual([3, 300]);
    expectProblem(await settle({ tokns: 5 }), 422, 'errors/unprocessable_entity');
  });

  it.each([
    [{ tokns: 5 }, /^cost has the unknown unit "tokns"/],
    [{ tokens: 0 }, /cost/],
    [{}, /cost/],
    [{ Tokens: 5 }, /cost/],
    ['5', /cost/],
  ])('refuses the cost %j', async (cost, detail) => {
    const problem = expectProblem(
      await decide({ route: CHAT, account: 'acc_5', cost }),
      422,
      'errors/unprocessable_entity',
    );
    expect(problem.detail).toMatch(detail);
    expect(await tokensLeft('acc_5')).toEqual([5, 1_000]);
  });

  it('another proxy names the cost in its URL', async () => {
    const ask = (query: string) =>
      send(gateway.decisionsPort, {
        path: `/decide${query}`,
        headers: { 'x-api-key': TOKEN, 'x-forwarded-method': 'POST', 'x-forwarded-uri': '/chat?id=acc_6' },
      });
    expect((await ask('?cost.tokens=250')).status).toBe(200);
    expect(await tokensLeft('acc_6')).toEqual([4, 750]);
    expect((await ask('?cost=2&cost.tokens=50')).status).toBe(200);
    expect((await ask('')).status).toBe(200);
    expect(await tokensLeft('acc_6')).toEqual([1, 300]);
    for (const query of ['?cost.tokns=5', '?cost.tokens=0', '?cost.tokens=1&cost.tokens=2', '?cost.=1'])
      expectProblem(await ask(query), 422, 'errors/unprocessable_entity');
  });
});

describe('operations', () => {
  it('metrics have the unit of the window that rejected, and no unit of a request', async () => {
    const text = await gateway.metrics();
    expect(text).toMatch(
      /headgate_decisions_total\{route="POST \/chat",limit="all-methods",outcome="rejected",unit="tokens"\} \d/,
    );
    expect(text).toMatch(/headgate_decisions_total\{route="POST \/chat",limit="all-methods",outcome="accepted"\} \d/);
    expect(text).not.toContain('tokns');
  });

  it('the log has the cost per unit, also the final one', async () => {
    used = '120';
    const reply = await chat('acc_7');
    const id = reply.headers['x-request-id'];
    const lines = () => gateway.lines().filter(({ req_id }) => req_id === id);
    await expect
      .poll(lines)
      .toEqual(
        expect.arrayContaining([
          expect.objectContaining({ msg: 'request', cost: { requests: 1, tokens: 400 } }),
          expect.objectContaining({ msg: 'refund', cost: { tokens: 120 } }),
        ]),
      );
    const trace = await askAdmin(gateway.adminPort, 'GET', `/v1/decisions?req_id=${id}`);
    expect(JSON.parse(trace.text)).toMatchObject({ cost: 1, costs: { requests: 1, tokens: 400 } });
  });

  it('explain takes a cost per unit', async () => {
    const explain = async (cost: unknown) =>
      JSON.parse(
        (await askAdmin(gateway.adminPort, 'POST', '/v1/explain', { json: { account: 'acc_8', route: CHAT, cost } }))
          .text,
      );
    expect(await explain({ tokens: 1_000 })).toMatchObject({ accepted: true });
    expect(await explain({ tokens: 1_001 })).toMatchObject({
      status: 422,
      rejectedBy: { unit: 'tokens' },
      passesInMs: null,
    });
    expect(await explain(6)).toMatchObject({ status: 422, rejectedBy: { max: 5 } });
    expect(await explain({ tokns: 1 })).toMatchObject({ status: 422, type: 'errors/unprocessable_entity' });
  });

  it('an operator adjusts windows of the units that the config counts, and no others', async () => {
    const put = (windows: readonly string[]) =>
      askAdmin(gateway.adminPort, 'POST', '/v1/limits/batch', {
        json: { changes: [{ target: { account: 'acc_8' }, windows }], reason: 'more', confirm: true },
      });
    const reply = await put(['5/1h', '2000 tokens/1h']);
    expect([reply.status, reply.text]).toEqual([200, expect.stringContaining('2000 tokens/1h')]);
    expect(await tokensLeft('acc_8')).toEqual([5, 2_000]);
    expect((await put(['9 images/1h'])).status).toBe(422);
  });
});

it('a reload changes the cost of a route', async () => {
  used = undefined;
  const routes = [{ ...ROUTES[0], cost: { tokens: 10 } }];
  await gateway.gateway.reload(checkConfig(configWith(LIMITS, routes), 'test'));
  const before = await tokensLeft('acc_5');
  await chat('acc_5');
  expect(await tokensLeft('acc_5')).toEqual([before[0], (before[1] as number) - 10]);
});

describe('a config', () => {
  const issuesOf = (routes: readonly object[], limits: object = LIMITS): string => {
    try {
      checkConfig(configWith(limits, routes), 'test');
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };

  it.each<[object, string]>([
    [{ cost: { tokns: 5 } }, 'routes[0].cost.tokns: no window of limits counts "tokns", did you mean "tokens"?'],
    [{ cost: 0 }, 'routes[0].cost'],
    [{ cost: {} }, 'routes[0].cost'],
    [{ cost: { tokens: 1.5 } }, 'routes[0].cost'],
    [
      { cost: 2, finalCost: { tokens: 'x-used' } },
      'routes[0].finalCost.tokens: cost of the route must name "tokens" too: only what was charged before can be corrected',
    ],
    [{ cost: { tokens: 5 }, finalCost: { tokens: 'a b' } }, 'routes[0].finalCost.tokens: is not a header name'],
  ])('%j is refused', (route, message) => {
    expect(issuesOf([{ route: CHAT, account: 'key', ...route }])).toContain(message);
  });

  it('a unit that no route costs is a warning, unless a program can name it', () => {
    const warnings = (routes: readonly object[], decisions?: object) =>
      warningsFor(checkConfig({ ...configWith(LIMITS, routes), decisions }, 'test')).map(({ reason }) => reason);
    const never = expect.stringMatching(/^no route has a cost in tokens, so windows of tokens never apply/);
    expect(warnings([{ route: CHAT, account: 'key', cost: 2 }])).toContainEqual(never);
    expect(warnings([{ route: CHAT, account: 'key', cost: { tokens: 2 } }])).not.toContainEqual(never);
    expect(warnings([{ route: CHAT, account: 'key' }], {})).not.toContainEqual(never);
  });

  it('takes a unit of any layer, as a text or as an object', () => {
    const route = { route: CHAT, account: 'key', cost: { requests: 1, bytes: 5 } };
    expect(issuesOf([route])).toContain('no window of limits counts "bytes"');
    const window = { max: 9, durationMs: 60_000, unit: 'bytes' };
    expect(issuesOf([route], { default: { allMethods: ['5/1m'], routes: { [CHAT]: [window] } } })).toBe('');
    expect(issuesOf([route], { default: { allMethods: ['5/1m', '9 Bytes/1m'] } })).toContain(
      'a unit has up to 32 lower-case letters',
    );
  });
});

/** The config of the gateway with other limits and routes. */
function configWith(limits: object, routes: readonly object[] = ROUTES): Record<string, unknown> {
  return {
    ...COMMON,
    upstream: upstream?.url ?? 'http://127.0.0.1:1',
    listen: { host: '127.0.0.1', port: 0 },
    decisions: { host: '127.0.0.1', port: 0, secret: 'a-secret-of-receipts-0123456789abcdef' },
    routes,
    limits,
  };
}
