/** A candidate for other limits, over the Admin API (S27). */

import { waitFor } from 'headgate-testbed/patience';
import { openRaw } from 'headgate-testbed/raw-http';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { ADMIN, type AdminAsk, type AdminGateway, startAdminGateway, TOKENS } from '../support/admin.ts';
import { configOf, expectProblem } from '../support/gateway.ts';

const CHATS = 'GET /api/v1/chats';
const LIMITS = {
  default: { allMethods: ['4/1h'] },
  providers: { mock: { routes: { [CHATS]: ['50/1m'] } } },
};
const TIGHT = { limits: { default: { allMethods: ['1/1h'] } } };
const counts = { both: 0, none: 0, onlyCandidate: 0, onlyCurrent: 0, dropped: 0, failed: 0 };
const at = expect.stringMatching(/^\d{4}-.*Z$/);
let upstream: Upstream;
let gateway: AdminGateway;

async function start(rest: Record<string, unknown> = {}) {
  await gateway?.stop();
  gateway = await startAdminGateway(upstream.url, { limits: LIMITS, ...rest });
}
beforeEach(async () => {
  upstream = await startUpstream();
  await start();
});
afterEach(() => gateway.stop());

async function ask(method: string, path = '/v1/shadow', more: AdminAsk = {}) {
  const reply = await gateway.admin(method, path, { as: 'operator', ...more });
  return { ...reply, value: JSON.parse(reply.text) };
}
const put = (json: object, path = '/v1/shadow') => ask('PUT', path, { json });
const chats = (account = 'acc_1') => gateway.ask('GET', `/api/v1/chats?account_id=${account}`);
const totalIs = (expected: object) =>
  waitFor(async () => expect((await ask('GET')).value.figures.total).toEqual({ ...counts, ...expected }));

describe('a candidate at run time', () => {
  it('counts beside the limits, is shown, and ends', async () => {
    expect((await ask('GET')).value).toEqual({ candidate: null, durable: false, figures: null, promotion: null });
    expect((await ask('GET', '/v1/shadow?fleet=true')).value.fleet).toBe(null);
    const { value } = await put({ ...TIGHT, reason: 'INC-12' });
    expect(value).toMatchObject({
      candidate: { source: 'operator', sample: 1, store: 'same', by: 'olaf', reason: 'INC-12', at },
      figures: { since: at, counters: 'process', total: counts, routes: [], accounts: [], unlisted: 0 },
    });
    expect([(await chats()).status, (await chats()).status]).toEqual([200, 200]);
    await totalIs({ none: 1, onlyCandidate: 1 });
    const shown = (await ask('GET', '/v1/shadow?fleet=true')).value;
    expect(shown.figures.routes).toEqual([{ route: CHATS, ...counts, none: 1, onlyCandidate: 1 }]);
    expect(shown.figures.accounts).toEqual([{ account: 'acc_1', route: CHATS, limit: 'all-methods', rejected: 1 }]);
    expect(shown.fleet).toEqual({ processes: { counted: 1, of: 1 }, total: { ...counts, none: 1, onlyCandidate: 1 } });
    expect((await ask('GET', '/v1/status')).value.shadow).toMatchObject({ source: 'operator', total: { none: 1 } });
    expect(await gateway.metrics()).toContain(
      `headgate_shadow_decisions_total{route="${CHATS}",limit="all-methods",current="accepted",candidate="rejected"} 1`,
    );
    expect((await ask('DELETE')).value.candidate).toBe(null);
    expect((await ask('GET', '/v1/status')).value.shadow).toBe(null);
    expect((await ask('DELETE')).status).toBe(200);
    expect((await chats()).status).toBe(200);
  });

  it('the line of a request that differs says what the candidate says, and so does an event', async () => {
    await put(TIGHT);
    for (let i = 0; i < 2; i++) await chats();
    await totalIs({ none: 1, onlyCandidate: 1 });
    await waitFor(() => expect(gateway.lines().filter(({ msg }) => msg === 'request')).toHaveLength(2));
    const lines = gateway.lines().filter(({ msg }) => msg === 'request');
    expect(lines.map(({ shadow }) => shadow)).toEqual([undefined, 'rejected']);
    const client = await openRaw(gateway.adminPort);
    const fields = `Host: localhost\r\nAuthorization: Bearer ${TOKENS.viewer}\r\n`;
    client.write(`GET /v1/events?types=shadow,state&after=0 HTTP/1.1\r\n${fields}\r\n`);
    await waitFor(() => expect(client.received()).toContain('event: shadow\n'));
    client.destroy();
    expect(client.received()).toContain('"state":"shadow_started","by":"olaf"');
    const event = JSON.parse(/event: shadow\ndata: (.*)/.exec(client.received())?.[1] ?? '');
    const { req_id } = lines[1] as { req_id: string };
    const differing = { current: 'accepted', candidate: 'rejected', limit: 'all-methods' };
    expect(event).toEqual({ at, req_id, account: 'acc_1', route: CHATS, ...differing });
  });

  it('another candidate starts with empty counters and figures; the same request again too', async () => {
    await put(TIGHT);
    for (let i = 0; i < 2; i++) await chats();
    await totalIs({ none: 1, onlyCandidate: 1 });
    expect((await put(TIGHT)).value.figures.total).toEqual(counts);
    await chats();
    await totalIs({ none: 1 });
  });

  it('sees refunds and resets', async () => {
    await put({ limits: { default: { allMethods: ['2/1h'] } } });
    await chats();
    await ask('POST', '/v1/windows/reset', { json: { account: 'acc_1' } });
    for (let i = 0; i < 2; i++) await chats();
    await totalIs({ none: 3 });
  });

  it('is promoted by the changes that it answers with', async () => {
    const { value } = await put({ limits: { default: { allMethods: ['3/1h'] } } });
    expect(value.promotion).toEqual({
      changes: [
        { target: {}, before: ['4/1h'], windows: ['3/1h'], version: 0 },
        { target: { provider: 'mock', route: CHATS }, before: ['50/1m'], windows: [], version: 0 },
      ],
      left: 0,
      obstacles: [],
    });
    const changes = value.promotion.changes.map(({ before: _, ...change }: { before: unknown }) => change);
    const preview = await ask('POST', '/v1/limits/batch?dryRun=true', { json: { changes } });
    expect(preview.value.changes).toHaveLength(2);
    expect((await ask('POST', '/v1/limits/batch', { json: { changes, confirm: true } })).status).toBe(200);
    expect((await ask('GET')).value.promotion).toEqual({ changes: [], left: 0, obstacles: [] });
    for (let i = 0; i < 4; i++) await chats();
    await totalIs({ none: 3, both: 1 });
  });

  it('dryRun runs nothing', async () => {
    const { value } = await put(TIGHT, '/v1/shadow?dryRun=true');
    expect(value).toMatchObject({ candidate: { by: 'olaf', at: null }, figures: null, promotion: { left: 0 } });
    expect((await ask('GET')).value.candidate).toBe(null);
  });

  it.each<[what: string, json: object, detail: RegExp]>([
    ['no limits', {}, /limits: is missing/],
    ['no window', { limits: {} }, /^limits: has no window/],
    ['a window that is none', { limits: { default: { allMethods: ['x'] } } }, /limits\.default\.allMethods/],
    ['two equal durations', { limits: { default: { allMethods: ['1/1m', '2/1m'] } } }, /^limits\.default\.allMethods/],
    ['an unknown route', { limits: { default: { routes: { 'GET /x': ['1/1m'] } } } }, /no such route/],
    ['an unknown account', { limits: { ...TIGHT.limits, accounts: { __proto__x: {} } } }, /no such account/],
    ['a sample of 0', { ...TIGHT, sample: 0 }, /^sample: must be more than 0/],
    ['a sample above 1', { ...TIGHT, sample: 2 }, /^sample/],
    ['an unknown store', { ...TIGHT, store: 'redis' }, /^store/],
    ['an unknown option', { ...TIGHT, samples: 1 }, /^samples: unknown option/],
    ['unlimited beside windows', { limits: { ...TIGHT.limits, unlimited: true } }, /^limits\.unlimited/],
  ])('%s is 422, and nothing runs', async (_what, json, detail) => {
    const reply = await put(json);
    expectProblem(reply, 422, 'errors/unprocessable_entity');
    expect(reply.value.detail).toMatch(detail);
    expect((await ask('GET')).value.candidate).toBe(null);
  });

  it.each<[what: string, body: string, status: number]>([
    ['no JSON', '{"limits":', 400],
    ['null', 'null', 422],
    ['a list', '[]', 422],
    ['a prototype', '{"__proto__":{"limits":{"default":{"allMethods":["1/1h"]}}}}', 422],
    ['deep nesting', `{"limits":${'{"default":'.repeat(5_000)}1${'}'.repeat(5_000)}}`, 400],
    ['a number that is too large', '{"limits":{"default":{"allMethods":["1/1h"]}},"sample":1e999}', 422],
    ['64 KB and more', JSON.stringify({ ...TIGHT, reason: 'x'.repeat(65_536) }), 413],
  ])('a body of %s runs nothing', async (_what, body, status) => {
    const reply = await ask('PUT', '/v1/shadow', { body, headers: { 'content-type': 'application/json' } });
    expect(reply.status).toBe(status);
    expect((await ask('GET')).value.candidate).toBe(null);
  });

  it('of two operators at once, one candidate runs', async () => {
    const samples = [0.1, 0.2, 0.3, 0.4];
    await Promise.all(samples.map((sample) => put({ ...TIGHT, sample })));
    const { candidate, figures } = (await ask('GET')).value;
    expect(samples).toContain(candidate.sample);
    expect(figures.total).toEqual(counts);
  });

  it.each([
    ['GET', 'viewer', 200],
    ['PUT', 'viewer', 403],
    ['DELETE', 'viewer', 403],
    ['DELETE', 'operator', 200],
    ['PUT', 'operator', 200],
    ['GET', undefined, 401],
  ] as const)('%s as %s is %i', async (method, as, status) => {
    const more = method === 'PUT' ? { json: TIGHT } : {};
    expect((await gateway.admin(method, '/v1/shadow', { as, ...more })).status).toBe(status);
  });
});

describe('a candidate of the config', () => {
  const shadow = { ...TIGHT, sample: 1, store: 'memory' };
  const reload = (rest: object) =>
    gateway.gateway.reload(checkConfig(configOf(upstream.url, { admin: ADMIN, limits: LIMITS, ...rest }), 'test'));

  it('runs from the start; a reload swaps it, and keeps the same one', async () => {
    await start({ shadow });
    expect((await ask('GET')).value.candidate).toMatchObject({ source: 'config', by: null, reason: null, at: null });
    await chats();
    await totalIs({ none: 1 });
    await reload({ shadow, forwardFields: ['x-real-ip'] });
    await totalIs({ none: 1 });
    await reload({ shadow: { limits: { default: { allMethods: ['9/1h'] } } } });
    expect((await ask('GET')).value).toMatchObject({ candidate: { store: 'same' }, figures: { total: counts } });
    await reload({});
    expect((await ask('GET')).value.candidate).toBe(null);
  });

  it('a reload leaves that of an operator as it is, with its figures', async () => {
    await put(TIGHT);
    await chats();
    await totalIs({ none: 1 });
    await reload({ shadow, forwardFields: ['x-real-ip'] });
    expect((await ask('GET')).value.candidate).toMatchObject({ source: 'operator', by: 'olaf' });
    await totalIs({ none: 1 });
    await reload({});
    await totalIs({ none: 1 });
  });

  it('10,000 limits: the answer has 100 changes, and comes in time', async () => {
    const accounts = Array.from({ length: 10_000 }, (_, i) => ({ id: `a_${i}`, application: 'app_1' }));
    const each = Object.fromEntries(accounts.map(({ id }) => [id, { allMethods: ['1/1h'] }]));
    await start({ accounts, shadow: { limits: { ...LIMITS, accounts: each } } });
    const from = process.cpuUsage();
    const { value, text } = await ask('GET');
    const { user, system } = process.cpuUsage(from);
    expect([value.promotion.changes.length, value.promotion.left]).toEqual([100, 9_900]);
    expect(text.length).toBeLessThan(500_000);
    // CPU, because the time depends on what else the machine does.
    expect((user + system) / 1_000).toBeLessThan(2_000);
  });

  it('gives way to that of an operator, and runs again after it; DELETE cannot end it', async () => {
    await start({ shadow });
    const refused = await ask('DELETE');
    expectProblem(refused, 409, 'errors/conflict');
    await put({ limits: { default: { allMethods: ['9/1h'] } } });
    expect((await ask('GET')).value.candidate.source).toBe('operator');
    expect((await ask('DELETE')).value.candidate.source).toBe('config');
  });
});

describe('what a promotion cannot say', () => {
  it('a scope, lanes, and a limit of a provider beneath which the layers differ', async () => {
    await start({
      accounts: [{ id: 'acc_1', application: 'app_1', provider: 'mock', plan: 'pro' }],
      limits: {
        default: { allMethods: { windows: ['10/1m'], scope: 'account' } },
        plans: { pro: { allMethods: ['20/1m'] } },
        providers: { mock: { allMethods: ['30/1m'] } },
        accounts: { acc_1: { allMethods: ['40/1m'] } },
      },
    });
    const { value } = await put({
      limits: {
        default: { allMethods: ['10/1m'] },
        plans: { pro: { allMethods: ['25/1m'] } },
        lanes: { bulk: 0.9 },
      },
    });
    expect(value.promotion.obstacles).toEqual([
      'limits.default.allMethods: an adjustment keeps the scope "account", the candidate has "route".',
      'limits.plans["pro"].allMethods: an adjustment keeps the scope "account", the candidate has "route".',
      'limits.providers["mock"].allMethods: the candidate has no such limit, and an adjustment cannot remove it.',
      'limits.lanes: the candidate has other lanes, and an adjustment cannot change them.',
    ]);
    expect(value.promotion.changes).toEqual([
      { target: { account: 'acc_1' }, before: ['40/1m'], windows: ['25/1m'], version: 0 },
      { target: { plan: 'pro' }, before: ['20/1m'], windows: ['25/1m'], version: 0 },
    ]);
  });

  it('an adjustment that the candidate does not have is reset', async () => {
    await ask('PUT', '/v1/limit?account=acc_1', { json: { windows: ['9/1h'] } });
    const { value } = await put({ limits: LIMITS });
    expect(value.promotion.changes).toEqual([
      { target: { account: 'acc_1' }, before: ['9/1h'], windows: null, version: 1 },
    ]);
  });

  it('more than 100 changes: the rest comes after these', async () => {
    const accounts = Array.from({ length: 150 }, (_, i) => ({ id: `a_${i}`, application: 'app_1' }));
    await start({ accounts });
    const { value } = await put({
      limits: { ...LIMITS, accounts: Object.fromEntries(accounts.map(({ id }) => [id, { allMethods: ['1/1h'] }])) },
    });
    expect([value.promotion.changes.length, value.promotion.left]).toEqual([100, 50]);
  });
});
