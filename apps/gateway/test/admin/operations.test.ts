/** What the operations of the Admin API show and change, behind a gateway with real requests. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { eventually, openRaw, pause } from 'headgate-testbed/raw-http';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminAsk, type AdminGateway, startAdminGateway, TOKENS } from '../support/admin.ts';
import { type Document, documentOf, expectDescribed, expectDescribedFields } from '../support/described.ts';
import { expectProblem, ratesOf, sha256, TOKEN } from '../support/gateway.ts';

const CHATS = 'GET /api/v1/chats';
const SECRET = 'the-secret-of-fingerprints';
const RECEIPT_SECRET = 'the-secret-of-receipts-0123456789abcdef';
let upstream: Upstream;
let gateway: AdminGateway;
let document: Document;

/** The upstream never answers the next request. */
let holdsNext = false;

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => {
    if (!holdsNext) response.end('{"ok":true}');
    holdsNext = false;
  });
  gateway = await startAdminGateway(upstream.url, {
    decisions: { port: 0, secret: RECEIPT_SECRET },
    idempotency: { secret: SECRET, leaseMs: 50, maxRunMs: 20, waitMs: 0 },
    drainMs: 0,
    routes: [
      { route: CHATS, account: 'query.account_id' },
      { route: 'POST /api/v1/chats', account: 'query.account_id' },
      { route: 'POST /once', idempotent: true },
      { route: 'GET /open' },
    ],
    limits: {
      default: { allMethods: ['1000/1m'] },
      providers: { mock: { allMethods: ['5/1m', '8/1h'], routes: { [CHATS]: ['3/1m'] } } },
      accounts: { acc_2: { routes: { [CHATS]: [] } } },
    },
  });
  document = await documentOf(gateway);
});
afterAll(async () => {
  await gateway.stop();
});

/** Asks, and checks the answer against the document. */
async function ask(method: string, path: string, more: AdminAsk = {}) {
  const reply = await gateway.admin(method, path, more);
  return { ...reply, value: expectDescribed(document, { method, path, reply }) };
}

const chats = (account: string) => gateway.ask('GET', `/api/v1/chats?account_id=${account}`);
const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);

describe('the document', () => {
  it('is valid OpenAPI 3.1, and needs no token', async () => {
    expect(document).toMatchObject({ openapi: '3.1.0' });
    expect(await new Validator().validate({ ...structuredClone(document) })).toMatchObject({ valid: true });
  });

  it('names If-Match for every change whose answer has an etag, so that a generated client loses no update', () => {
    const withEtag = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { responses, parameters = [] }]) => {
        if (method === 'get' || responses[200]?.headers?.etag === undefined) return [];
        const names = parameters.flatMap(({ name, in: place }) => (place === 'header' ? [name] : []));
        return [`${method} ${path}: ${names.join(', ')}`];
      }),
    );
    expect(withEtag).toEqual(['put /v1/limit: If-Match, If-None-Match', 'delete /v1/limit: If-Match, If-None-Match']);
  });

  const ROLES = ['viewer', 'operator', 'admin'] as const;
  it('its roles are those that the operations ask for; without a token 401, and expired 401', async () => {
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, described]) => ({ path, method: method.toUpperCase(), described })),
    );
    const guarded = operations.filter(({ described }) => described.security.length > 0);
    expect(guarded.length).toBeGreaterThan(15);
    for (const { path, method, described } of guarded) {
      const role = /Role: (\w+)\.$/.exec(described.description ?? '')?.[1];
      for (const each of ROLES) {
        if (ROLES.indexOf(each) >= ROLES.indexOf(role as 'viewer')) continue;
        expectProblem(await gateway.admin(method, path, { as: each }), 403, 'errors/insufficient_permissions');
      }
      expect(ROLES).toContain(role);
    }
    // One of each, since ten failures would be too many.
    for (const { path, method } of guarded.slice(0, 2)) {
      const missing = await gateway.admin(method, path, { as: undefined });
      expectProblem(missing, 401, 'errors/missing_credentials');
      expectDescribedFields(document, { method, path, reply: missing });
      expectProblem(await gateway.admin(method, path, { as: 'expired' }), 401, 'api/expired_authorization');
    }
  });
});

describe('the process', () => {
  it('its status', async () => {
    await chats('acc_9');
    const { value } = await ask('GET', '/v1/status', { as: 'viewer' });
    expect((await ask('GET', '/v1/status', { as: 'operator' })).value.caller).toEqual({
      name: 'olaf',
      role: 'operator',
    });
    expect(value).toMatchObject({
      name: 'headgate',
      instance: expect.stringMatching(/:\d+:\w+$/),
      startedAt: at,
      caller: { name: 'vera', role: 'viewer' },
      state: 'serving',
      store: { kind: 'memory', health: 'ok', breaker: 'closed' },
      claims: { inFlight: expect.any(Number), background: 0, orphansMet: expect.any(Number) },
    });
  });

  it('its keys, by pages, with eight digits of their hashes', async () => {
    const { value } = await ask('GET', '/v1/keys?limit=1', { as: 'viewer' });
    expect(value).toEqual({
      keys: [
        {
          name: sha256(TOKEN).slice(0, 12),
          application: 'app_1',
          plan: null,
          lane: null,
          role: 'account',
          scope: null,
          sha256: expect.stringMatching(/^\w{8}$/),
          expiresAt: null,
        },
      ],
      next: null,
    });
  });

  it('its config, without a secret', async () => {
    const { value, text } = await ask('GET', '/v1/config', { as: 'viewer' });
    expect(value).toMatchObject({
      keys: 1,
      accounts: 9,
      idempotency: { hasSecret: true, leaseMs: 50 },
      decisions: { hasSecret: true },
      admin: { tokens: [{ name: 'vera', role: 'viewer' }, {}, {}, {}] },
      limits: { accounts: { acc_2: {} } },
    });
    for (const secret of [SECRET, RECEIPT_SECRET, TOKEN, ...Object.values(TOKENS)]) expect(text).not.toContain(secret);
    expect(text).not.toMatch(/"sha256":"\w{9}/);
  });

  it('its accounts, sorted by id, by prefix and by pages', async () => {
    const list = async (query: string) => (await ask('GET', `/v1/accounts${query}`, { as: 'viewer' })).value;
    const ids = ({ accounts }: { accounts: { id: string }[] }) => accounts.map(({ id }) => id);
    const all = await list('');
    expect(ids(all)).toEqual([...Array(9).keys()].map((i) => `acc_${i + 1}`));
    expect(all).toMatchObject({ next: null });
    expect(all.accounts[0]).toEqual({ id: 'acc_1', application: 'app_1', provider: 'mock', plan: null });
    const first = await list('?prefix=acc_&limit=5');
    expect(ids(first)).toEqual(['acc_1', 'acc_2', 'acc_3', 'acc_4', 'acc_5']);
    expect(ids(await list(`?prefix=acc_&limit=5&cursor=${first.next}`))).toEqual(['acc_6', 'acc_7', 'acc_8', 'acc_9']);
    expect(ids(await list('?prefix=acc_7'))).toEqual(['acc_7']);
    for (const unknown of ['acc_77', 'b', 'A', 'acc_9%00', '%25'])
      expect(await list(`?prefix=${unknown}`)).toEqual({ accounts: [], next: null });
    expectProblem(await ask('GET', '/v1/accounts?cursor=x'), 422, 'errors/unprocessable_entity');
  });

  it('drains and undrains: only /readyz changes, on both listeners', async () => {
    const ready = async () => [
      (await gateway.ask('GET', '/readyz')).status,
      (await gateway.admin('GET', '/readyz', { as: undefined })).status,
    ];
    expect((await ask('POST', '/v1/drain', { json: { reason: 'deploy' } })).value).toEqual({ state: 'draining' });
    expect(await ready()).toEqual([503, 503]);
    expect((await gateway.ask('GET', '/open')).status).toBe(200);
    expect((await ask('GET', '/v1/status')).value.state).toBe('draining');
    expect((await ask('POST', '/v1/undrain', { json: {} })).value).toEqual({ state: 'serving' });
    expect(await ready()).toEqual([200, 200]);
  });
});

describe('limits of an account', () => {
  it('come from layers; the more specific one hides the others', async () => {
    const path = `/v1/effective?account=acc_2&route=${encodeURIComponent(CHATS)}`;
    expect((await ask('GET', path, { as: 'viewer' })).value).toEqual({
      account: 'acc_2',
      provider: 'mock',
      plan: null,
      route: CHATS,
      limits: [
        {
          limit: 'route',
          from: 'account',
          adjusted: false,
          windows: [],
          hides: [{ from: 'provider', adjusted: false, windows: ['3/1m'] }],
        },
        {
          limit: 'all-methods',
          from: 'provider',
          adjusted: false,
          windows: ['5/1m', '8/1h'],
          hides: [{ from: 'default', adjusted: false, windows: ['1000/1m'] }],
        },
      ],
    });
  });

  it('every window of every limited route, charging nothing', async () => {
    await chats('acc_3');
    await chats('acc_3');
    const look = async () => (await ask('GET', '/v1/windows?account=acc_3', { as: 'viewer' })).value;
    const first = await look();
    expect(first).toMatchObject({ account: 'acc_3', provider: 'mock', plan: null });
    expect(first.routes.map(({ route }: { route: string }) => route)).toEqual([CHATS, 'POST /api/v1/chats']);
    expect(first.routes[0].windows).toMatchObject([
      { limit: 'route', from: 'provider', max: 3, used: 2, remaining: 1, durationMs: 60_000 },
      { limit: 'all-methods', from: 'provider', max: 5, used: 2, remaining: 3, durationMs: 60_000 },
      { limit: 'all-methods', from: 'provider', max: 8, used: 2, remaining: 6, durationMs: 3_600_000 },
    ]);
    expect(first.routes[1].windows).toMatchObject([
      { used: 0, resetMs: 0 },
      { used: 0, resetMs: 0 },
    ]);
    for (let i = 0; i < 20; i++) await look();
    expect((await look()).routes[0].windows).toMatchObject([{ used: 2 }, { used: 2 }, { used: 2 }]);
  });

  it('a reset empties the windows of one route, or of an account, and no others', async () => {
    const remaining = async (account: string) => ratesOf(await chats(account)).remaining;
    for (const account of ['acc_4', 'acc_5']) expect(await remaining(account)).toBe(7);
    const reset = (json: object, as: 'operator' | 'admin' = 'operator') =>
      ask('POST', '/v1/windows/reset', { as, json });
    expect((await reset({ account: 'acc_4', route: 'POST /api/v1/chats' })).value).toEqual({ reset: true });
    expect(await remaining('acc_4')).toBe(6);
    await reset({ account: 'acc_4', route: CHATS });
    expect(await remaining('acc_4')).toBe(7);
    await reset({ account: 'acc_4' });
    expect(await remaining('acc_4')).toBe(7);
    expect(await remaining('acc_5')).toBe(6);
    await reset({ route: CHATS });
    expect(await remaining('acc_5')).toBe(7);
    expect((await reset({ all: true })).status).toBe(403);
    expect(await remaining('acc_5')).toBe(6);
    expect((await reset({ all: true }, 'admin')).status).toBe(200);
    expect(await remaining('acc_5')).toBe(7);
  });

  it('explain says what the next request is told, for 1,000 requests', async () => {
    const routes = [CHATS, 'POST /api/v1/chats'];
    for (let i = 0; i < 1_000; i++) {
      // Windows that are full tell the least, so half of the time they are empty.
      if (i % 50 === 0) await ask('POST', '/v1/windows/reset', { json: { all: true } });
      const account = `acc_${1 + ((i * 7) % 5)}`;
      const route = routes[(i * 3 + (i >> 2)) % 2] as string;
      const { value } = await ask('POST', '/v1/explain', { as: 'viewer', json: { account, route } });
      const reply = await gateway.ask(route.split(' ')[0] as string, `/api/v1/chats?account_id=${account}`);
      expect(value).toMatchObject({ accepted: reply.status === 200, status: reply.status, blocked: null });
      if (reply.status === 200) {
        expect(value).toMatchObject({ rejectedBy: null, passesInMs: 0 });
        continue;
      }
      const { limit, remaining, retryAfter } = ratesOf(reply);
      expect(value.rejectedBy).toMatchObject({ max: limit, remaining });
      // The header rounds up, and the request came a little later.
      expect(Math.abs(value.rejectedBy.resetMs / 1_000 - (retryAfter as number))).toBeLessThan(2);
      expect(value.passesInMs).toBeGreaterThanOrEqual(value.rejectedBy.resetMs);
    }
  });

  it('explain: a cost of more than the limit never passes', async () => {
    const json = { account: 'acc_6', route: CHATS, cost: 4 };
    const { value } = await ask('POST', '/v1/explain', { json });
    expect(value).toMatchObject({
      accepted: false,
      status: 422,
      passesInMs: null,
      rejectedBy: { limit: 'route', max: 3 },
    });
  });
});

describe('traffic', () => {
  it('the accounts at the top, with their fullest window', async () => {
    await ask('POST', '/v1/windows/reset', { json: { all: true } });
    for (let i = 0; i < 5; i++) await chats('acc_7');
    const top = async (by: string) => (await ask('GET', `/v1/top?by=${by}&limit=100`, { as: 'viewer' })).value;
    const mine = (list: { accounts: { account: string }[] }) =>
      list.accounts.find(({ account }) => account === 'acc_7');
    const rejected = await top('rejected');
    expect(rejected).toMatchObject({ by: 'rejected', exact: true, since: at });
    expect(mine(rejected)).toEqual({
      account: 'acc_7',
      count: 2,
      error: 0,
      lastMinute: 2,
      route: CHATS,
      tightest: expect.objectContaining({ limit: 'route', max: 3, used: 3, remaining: 0 }),
    });
    expect(mine(await top('accepted'))).toMatchObject({ count: 3 });
    // Only the third request left less than a fifth of a window.
    expect(mine(await top('near'))).toMatchObject({ count: 1, tightest: { remaining: 0 } });
  });

  it('figures of each second', async () => {
    await gateway.ask('GET', '/open');
    const sum = await eventually(async () => {
      const { value } = await ask('GET', '/v1/series?seconds=30', { as: 'viewer' });
      expect(value.seconds).toHaveLength(30);
      const total = (name: string) =>
        value.seconds.reduce((all: number, second: Record<string, number>) => all + (second[name] as number), 0);
      return total('unlimited') > 0 && { accepted: total('accepted'), rejected: total('rejected') };
    }, 'the end of the second');
    expect(sum.accepted).toBeGreaterThan(0);
    expect(sum.rejected).toBeGreaterThan(0);
    const { value } = await ask('GET', '/v1/series?seconds=30');
    const called = value.seconds.find(({ storeP99Ms }: { storeP99Ms: number | null }) => storeP99Ms !== null);
    expect(called.storeP50Ms).toBeGreaterThan(0);
    expect(called.storeP99Ms).toBeGreaterThanOrEqual(called.storeP50Ms);
  });

  it('the trace of a decision by its req_id', async () => {
    const reply = await chats('acc_8');
    const { value } = await ask('GET', `/v1/decisions?req_id=${reply.headers['x-request-id']}`, { as: 'viewer' });
    expect(value).toMatchObject({
      at,
      outcome: 'accepted',
      account: 'acc_8',
      route: CHATS,
      cost: 1,
      impossible: false,
    });
    expect(value.trace).toMatchObject([
      { limit: 'route', used: 1 },
      { limit: 'all-methods', used: 1 },
      { limit: 'all-methods', used: 1 },
    ]);
    expect((await ask('GET', '/v1/decisions?req_id=nothing')).status).toBe(404);
  });
});

describe('claims', () => {
  const post = (path: string, key: string) => gateway.ask('POST', path, { 'idempotency-key': key }, { body: 'x' });
  const of = (key: string) => `application=app_1&key=${key}`;

  it('a completed one, and its answer', async () => {
    await post('/once', 'done');
    const { value, text } = await ask('GET', `/v1/claims?${of('done')}`, { as: 'viewer' });
    expect(value).toMatchObject({ application: 'app_1', key: 'done', state: 'completed', status: '200', leaseMs: 0 });
    expect(value.valueBytes).toBeGreaterThan(0);
    expect(text).not.toMatch(/fingerprint|owner|"ok"/);
    const result = await ask('GET', `/v1/claims/result?${of('done')}`);
    expect(result.value).toMatchObject({ status: 200, body: '{"ok":true}', encoding: 'utf-8' });
    expect((await ask('GET', `/v1/claims?${of('never')}`)).status).toBe(404);
    const id = { application: 'app_1', key: 'done' };
    const again = await ask('POST', '/v1/claims/complete', { json: { ...id, answer: { status: 201 } } });
    expectProblem(again, 409, 'errors/conflict');
    expect(again.value.detail).toMatch(/^already_completed/);
    expect((await ask('POST', '/v1/claims/release', { json: id })).value.detail).toMatch(/^completed/);
  });

  /** A request whose gateway has given it up. Its retry runs into an orphan. */
  const orphan = async (key: string) => {
    holdsNext = true;
    // It ends with the gateway.
    post('/once', key).catch(() => {});
    await eventually(async () => (await ask('GET', `/v1/claims?${of(key)}`)).value.state === 'orphan', 'the orphan');
    expectProblem(await post('/once', key), 409, 'errors/conflict');
  };

  it('an orphan that is completed: its retry gets that answer', async () => {
    await orphan('order-1');
    const { value } = await ask('GET', '/v1/claims/orphans', { as: 'viewer' });
    expect(value).toEqual({ orphans: [{ application: 'app_1', key: 'order-1', at }], next: null });
    const answer = { status: 201, headers: { 'content-type': 'application/json' }, body: '{"id":"mail-1"}' };
    const json = { application: 'app_1', key: 'order-1', answer, reason: 'found at the provider' };
    expect((await ask('POST', '/v1/claims/complete', { as: 'operator', json })).value).toEqual({
      outcome: 'completed',
    });
    const retry = await post('/once', 'order-1');
    expect(retry).toMatchObject({ status: 201, text: '{"id":"mail-1"}' });
    expect(retry.headers['idempotency-replayed']).toBe('true');
  });

  it('one whose owner lives is not completed: its client gets the real answer', async () => {
    const slow = await startUpstream(async (_seen, response) => {
      const json = { application: 'app_1', key: 'order-3', answer: { status: 201 } };
      const refused = await patient.admin('POST', '/v1/claims/complete', { json });
      response.end(JSON.parse(refused.text).detail);
    });
    const patient = await startAdminGateway(slow.url, { routes: [{ route: 'POST /once', idempotent: true }] });
    const { status, text } = await patient.ask('POST', '/once', { 'idempotency-key': 'order-3' }, { body: 'x' });
    expect([status, text]).toEqual([200, 'in_progress: its owner still has the lease; wait for leaseMs.']);
    await patient.stop();
  });

  it('an orphan that is released is executed by its retry', async () => {
    const before = upstream.seen.length;
    await orphan('order-2');
    const json = { application: 'app_1', key: 'order-2', reason: 'not sent' };
    expect((await ask('POST', '/v1/claims/release', { as: 'operator', json })).value).toEqual({ outcome: 'released' });
    expect((await ask('GET', `/v1/claims?${of('order-2')}`)).value.state).toBe('free');
    expect((await post('/once', 'order-2')).status).toBe(200);
    expect(upstream.seen).toHaveLength(before + 2);
  });

  it('what there is not: 404; what is no answer: 422', async () => {
    const id = { application: 'app_1', key: 'nothing' };
    expect((await ask('POST', '/v1/claims/release', { json: id })).status).toBe(404);
    expect((await ask('POST', '/v1/claims/complete', { json: { ...id, answer: { status: 201 } } })).status).toBe(404);
    const wrong = { ...id, answer: { status: 204, body: 'x' } };
    expectProblem(await ask('POST', '/v1/claims/complete', { json: wrong }), 422, 'errors/unprocessable_entity');
  });

  describe('a scan', () => {
    interface Page {
      readonly claims: readonly { readonly key: string; readonly state: string }[];
      readonly looked: number;
      readonly next: string | null;
    }
    const scan = async (query: string): Promise<Page> =>
      (await ask('GET', `/v1/claims/scan?${query}`, { as: 'operator' })).value;

    it('finds the claims of a state without their keys, page by page, and shows no value', async () => {
      for (let i = 0; i < 25; i++) await post('/once', `scanned-${i}`);
      const keys: string[] = [];
      let looked = 0;
      let cursor: string | null = '';
      for (let pages = 0; cursor !== null; pages++) {
        expect(pages).toBeLessThan(20);
        const page: Page = await scan(`state=completed&limit=4${cursor && `&cursor=${cursor}`}`);
        expect(page.claims.length).toBeLessThanOrEqual(4);
        expect(JSON.stringify(page)).not.toMatch(/"ok"|fingerprint|owner|"value"/);
        keys.push(...page.claims.map(({ key }) => key));
        looked += page.looked;
        cursor = page.next;
      }
      expect(keys).toEqual(expect.arrayContaining(Array.from({ length: 25 }, (_, i) => `scanned-${i}`)));
      expect(new Set(keys).size).toBe(keys.length);
      expect(looked).toBeGreaterThanOrEqual(keys.length);
    });

    it('an orphan that no retry has met, as GET /v1/claims shows it', async () => {
      holdsNext = true;
      post('/once', 'order-4').catch(() => {});
      const found = await eventually(async () => {
        const { claims } = await scan('state=orphan&limit=500');
        return claims.find(({ key }) => key === 'order-4');
      }, 'the orphan');
      const { value } = await ask('GET', `/v1/claims?${of('order-4')}`);
      expect({ ...found, keptMs: 0 }).toEqual({ ...value, keptMs: 0 });
      expect((await ask('GET', '/v1/claims/orphans')).text).not.toContain('order-4');
      const states = (await scan('limit=500')).claims.map(({ state }) => state);
      expect(new Set(states)).toEqual(new Set(['completed', 'orphan']));
      const released = { application: 'app_1', key: 'order-4' };
      expect((await ask('POST', '/v1/claims/release', { json: released })).status).toBe(200);
    });

    it.each(['cursor=x', 'cursor=eA', 'cursor=', 'cursor=%00', `cursor=${'A'.repeat(9_000)}`])(
      'a wrong cursor is a 422 with its place: %.20s',
      async (query) => {
        const reply = await ask('GET', `/v1/claims/scan?${query}`);
        expect(expectProblem(reply, 422, 'errors/unprocessable_entity').detail).toBe(
          'cursor: must be `next` of an answer of this list',
        );
      },
    );

    it.each([
      ['state=lost', /^state: /],
      ['limit=501', /^limit: /],
      ['limit=0', /^limit: /],
      ['match=*', /match/],
    ])('%s is a 422', async (query, place) => {
      const reply = await ask('GET', `/v1/claims/scan?${query}`);
      expect(expectProblem(reply, 422, 'errors/unprocessable_entity').detail).toMatch(place);
    });
  });

  it('the log has no key and no application', async () => {
    const text = JSON.stringify(gateway.lines());
    expect(text).toContain('claim completed');
    for (const shown of ['order-1', 'order-2', 'order-4', 'scanned-', 'app_1', 'mail-1'])
      expect(text).not.toContain(shown);
  });
});

describe('events', () => {
  /** Listens to events until the test ends it. */
  const listen = async (query: string, as: keyof typeof TOKENS = 'viewer') => {
    const client = await openRaw(gateway.adminPort);
    client.write(`GET /v1/events?${query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKENS[as]}\r\n\r\n`);
    let text = '';
    client.socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
    });
    await eventually(() => text.includes(': events follow'), 'the beginning of the stream');
    return { text: () => text, end: () => client.destroy() };
  };

  it('decisions, filtered, and what operators do', async () => {
    const one = await listen('types=decision,state&account=acc_1');
    const all = await listen('types=decision,state,claim');
    await chats('acc_2');
    await chats('acc_1');
    await ask('POST', '/v1/windows/reset', { json: { account: 'acc_1' } });
    await eventually(() => all.text().includes('windows_reset'), 'the events');
    expect(one.text()).toMatch(/event: decision\ndata: \{.*"account":"acc_1"/);
    expect(one.text()).not.toContain('acc_2');
    expect(all.text()).toMatch(/id: \d+\nevent: decision\ndata: \{"at":".*Z","req_id":".*","account":"acc_2"/);
    expect(all.text()).toMatch(/event: state\ndata: \{.*"state":"windows_reset","by":"ada"\}/);
    one.end();
    const last = Math.max(...[...all.text().matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id)));
    all.end();
    const missed = await listen(`after=${last - 1}`);
    await eventually(() => missed.text().includes('windows_reset'), 'what was missed');
    expect(missed.text()).not.toContain('acc_2');
    missed.end();
  });

  it('more than three of a token, or eight of all: 503, and a place is free when one leaves', async () => {
    const of = (as: keyof typeof TOKENS, count: number) =>
      Promise.all(Array.from({ length: count }, () => listen('types=state', as)));
    const refused = async (as: keyof typeof TOKENS) =>
      expectProblem(await gateway.admin('GET', '/v1/events', { as }), 503, 'errors/service_unavailable').detail;
    const clients = await of('viewer', 3);
    expect(await refused('viewer')).toMatch(/^3 clients listen to the events with this token/);
    clients.push(...(await of('operator', 3)), ...(await of('admin', 2)));
    expect(await refused('admin')).toMatch(/^8 clients listen to the events, and there may not be more/);
    clients[0]?.end();
    const another = await eventually(() => listen('types=state', 'admin').catch(() => undefined), 'the free place');
    for (const client of [...clients, another]) client.end();
  });

  it('a client that asks three times on one connection, and leaves, leaves three places free', async () => {
    const client = await openRaw(gateway.adminPort);
    const fields = `Host: localhost\r\nAuthorization: Bearer ${TOKENS.viewer}\r\n`;
    client.write(`GET /v1/events?types=state HTTP/1.1\r\n${fields}\r\n`.repeat(3));
    await eventually(() => client.received().includes(': events follow'), 'the beginning of the stream');
    expect((await gateway.admin('GET', '/v1/events', { as: 'viewer' })).status).toBe(503);
    client.destroy();
    await pause(50);
    const another = await Promise.all([1, 2, 3].map(() => listen('types=state')));
    for (const each of another) each.end();
  });

  it('a change of limits, with its author and what it changes', async () => {
    const client = await listen('types=limits');
    const json = { windows: ['77/1m'], reason: 'INC-12', confirm: true };
    await ask('PUT', '/v1/limit?account=acc_6', { as: 'operator', json });
    await eventually(() => client.text().includes('event: limits'), 'the event');
    const data = JSON.parse(/^data: (.*)$/m.exec(client.text())?.[1] ?? '');
    expect(data).toEqual({
      ...{ at, version: 1, by: 'olaf', reason: 'INC-12', source: 'change' },
      changes: [{ target: { account: 'acc_6' }, old: null, new: ['77/1m'], until: null }],
    });
    client.end();
  });
});
