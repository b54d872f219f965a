/** Limits that operators change over the Admin API. */
import { hostname } from 'node:os';
import { startCpuTimer } from 'headgate-testbed/cpu-timer';
import { waitFor } from 'headgate-testbed/patience';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { ADMIN, type AdminAsk, type AdminGateway, startAdminGateway } from '../support/admin.ts';
import { type Document, documentOf, expectDescribedFields } from '../support/described.ts';
import { configOf, expectProblem, ratesOf } from '../support/gateway.ts';

const CHATS = 'GET /api/v1/chats';
const LIMITS = {
  default: { allMethods: { windows: ['1000/1m'], scope: 'account' } },
  providers: { mock: { routes: { [CHATS]: ['50/1m'] } } },
};
let upstream: Upstream;
let gateway: AdminGateway;
/** The same for every gateway. */
let document: Document | undefined;

beforeEach(async () => {
  upstream = await startUpstream();
  gateway = await startAdminGateway(upstream.url, { limits: LIMITS });
});
afterEach(() => gateway.stop());

async function ask(method: string, path: string, more: AdminAsk = {}) {
  const reply = await gateway.admin(method, path, { as: 'operator', ...more });
  document ??= await documentOf(gateway);
  expectDescribedFields(document, { method, path, reply });
  return { ...reply, value: JSON.parse(reply.text) };
}
const put = (path: string, json: object, headers = {}) => ask('PUT', path, { json, headers });
const chats = async (account = 'acc_1') =>
  ratesOf(await gateway.ask('GET', `/api/v1/chats?account_id=${account}`)).limit;
const ACC = '/v1/limit?account=acc_1';
const at = expect.stringMatching(/^\d{4}-.*Z$/);

describe('a limit', () => {
  it('holds from the next request on, keeps its counters and its scope, and is reset', async () => {
    expect(await chats()).toBe(1_000);
    const { value, headers } = await put(`${ACC}&wait=applied`, {
      windows: ['20/1m'],
      reason: 'INC-12',
      confirm: true,
    });
    expect(headers.etag).toBe('"1"');
    expect(value).toMatchObject({
      target: { account: 'acc_1' },
      limit: 'all-methods',
      base: null,
      effective: ['20/1m'],
      adjusted: { windows: ['20/1m'], version: 1, by: 'olaf', reason: 'INC-12', at, until: null },
      durable: false,
      applied: { instances: 1, of: 1, missing: [] },
    });
    expect(await chats()).toBe(20);
    expect(await chats('acc_2')).toBe(1_000);
    const windows = (await ask('GET', '/v1/windows?account=acc_1')).value.routes[0].windows;
    expect(windows[1]).toMatchObject({ from: 'account', adjusted: true, max: 20, used: 2 });
    expect((await ask('DELETE', ACC)).value).toMatchObject({ adjusted: null, effective: null });
    expect(await chats()).toBe(1_000);
    expect((await ask('DELETE', ACC)).status).toBe(200);
    expect((await ask('GET', ACC)).headers.etag).toBe('"0"');
  });

  it('is logged twice: who asked for it, and what changed, with the same revision', async () => {
    const { value } = await put(ACC, { windows: ['200/1m'], reason: 'INC-12' });
    const { revision } = value;
    await waitFor(() =>
      expect(gateway.lines().filter((line) => 'revision' in line)).toEqual([
        expect.objectContaining({ msg: 'limits adjusted', by: 'olaf', reason: 'INC-12', revision }),
        expect.objectContaining({ msg: 'admin request', operation: 'putLimit', by: 'olaf', status: 200, revision }),
      ]),
    );
  });

  it('stays over a reload, which changes what is below it', async () => {
    await put(ACC, { windows: ['200/1m'] });
    const limits = { ...LIMITS, default: { allMethods: ['900/1m'] } };
    await gateway.gateway.reload(checkConfig(configOf(upstream.url, { admin: ADMIN, limits }), 'test'));
    expect([await chats(), await chats('acc_2')]).toEqual([200, 900]);
  });

  it('is over at its end', async () => {
    await put(ACC, { windows: ['200/1m'], forMs: 1_500 });
    expect(await chats()).toBe(200);
    await expect.poll(() => chats()).toBe(1_000);
    expect((await ask('GET', ACC)).value.adjusted).toBeNull();
  });

  it('two operators: one wins, the other gets 412 with the version of now; nothing is lost', async () => {
    const [one, other] = await Promise.all([
      put(ACC, { windows: ['200/1m'] }, { 'if-match': '"0"' }),
      put(ACC, { windows: ['300/1m'] }, { 'if-none-match': '*' }),
    ]);
    expect([one.status, other.status].sort()).toEqual([200, 412]);
    const loser = one.status === 412 ? one : other;
    expectProblem(loser, 412, 'errors/precondition_failed');
    expect(loser.headers.etag).toBe('"1"');
    expect((await put(ACC, { windows: ['400/1m'] }, { 'if-match': '"1"' })).value.adjusted.version).toBe(2);
    expect((await ask('DELETE', ACC, { headers: { 'if-match': '"1"' } })).status).toBe(412);
    expect((await ask('GET', '/v1/limits/history')).value.entries).toHaveLength(2);
  });

  it('dryRun changes nothing; what could be a slip needs confirm', async () => {
    const json = { windows: ['50000/1m'] };
    const { value } = await put('/v1/limit?dryRun=true', json);
    expect(value.changes).toEqual([
      { target: {}, before: ['1000/1m'], after: ['50000/1m'], warnings: [expect.stringContaining('50 times more')] },
    ]);
    expectProblem(await put('/v1/limit', json), 422, 'errors/unprocessable_entity');
    expect((await ask('GET', '/v1/limits')).value.revision).toBe('0');
    expect((await put('/v1/limit', { ...json, confirm: true })).status).toBe(200);
    expect(await chats('acc_3')).toBe(50_000);
  });

  it('dryRun names the accounts that would be rejected now, by what they have really used', async () => {
    for (const account of ['acc_1', 'acc_1', 'acc_1', 'acc_2', 'acc_3', 'acc_3']) await chats(account);
    await put('/v1/limit?account=acc_3', { windows: ['900/1m'] });
    const preview = async (path: string, windows: string[]) => (await put(path, { windows })).value;
    const before = (await ask('GET', '/v1/windows?account=acc_1')).value.routes[0].windows;
    // acc_3 has a limit of its own, which hides the default one.
    expect(await preview('/v1/limit?dryRun=true', ['3/1m'])).toMatchObject({
      accounts: { affected: 2 },
      now: [
        { account: 'acc_1', route: CHATS, used: 3, max: 3, wouldReject: true, perMinute: 3, fullAfterMs: null },
        { account: 'acc_2', route: CHATS, used: 1, max: 3, wouldReject: false, perMinute: 1, fullAfterMs: null },
      ],
    });
    // Of two windows the fuller one counts; that of a new duration has not counted anything.
    expect((await preview(`${ACC}&dryRun=true`, ['2/1m', '500/1d'])).now).toEqual([
      { account: 'acc_1', route: CHATS, used: 3, max: 2, wouldReject: true, perMinute: 3, fullAfterMs: 40_000 },
    ]);
    expect((await preview(`${ACC}&dryRun=true`, ['500/1d'])).now).toMatchObject([{ used: 0, wouldReject: false }]);
    expect(await preview(`${ACC}&dryRun=true`, [])).toMatchObject({ accounts: { affected: 1 }, now: [] });
    expect(await preview('/v1/limit?account=acc_9&dryRun=true', ['5/1m'])).toMatchObject({
      accounts: { affected: 0 },
      now: [],
    });
    const reset = await ask('DELETE', '/v1/limit?account=acc_3&dryRun=true');
    expect(reset.value).toMatchObject({ accounts: { affected: 1 }, now: [{ account: 'acc_3', used: 2, max: 1_000 }] });
    const changes = [
      { target: { route: 'POST /api/v1/chats' }, windows: ['0/1m'] },
      { target: { account: 'acc_2' }, windows: ['1/1m'] },
    ];
    const batch = await ask('POST', '/v1/limits/batch?dryRun=true', { json: { changes } });
    expect(batch.value).toMatchObject({ changes: [{}, {}], accounts: { affected: 3 } });
    // The route of its last request if that one changes, or else a route of the change.
    expect(batch.value.now.map(({ account, route }: { account: string; route: string }) => [account, route])).toEqual([
      ['acc_1', 'POST /api/v1/chats'],
      ['acc_3', 'POST /api/v1/chats'],
      ['acc_2', CHATS],
    ]);
    expect((await ask('GET', '/v1/windows?account=acc_1')).value.routes[0].windows).toMatchObject(
      before.map(({ used }: { used: number }) => ({ used })),
    );
  });

  it('dryRun says of an account what its provider and plan say, and the change warns of the same', async () => {
    const limits = { ...LIMITS, plans: { free: { allMethods: ['30/1m'] } } };
    const accounts = [{ id: 'acc_9', application: 'app_1', provider: 'mock', plan: 'free' }];
    const other = await startAdminGateway(upstream.url, { limits, accounts });
    const change = async (query: string, windows: string[]) => {
      const { text } = await other.admin('PUT', `/v1/limit?account=acc_9${query}`, {
        as: 'operator',
        json: { windows },
      });
      return JSON.parse(text);
    };
    const ofRoute = { account: 'acc_9', route: CHATS };
    expect((await change(`&route=${encodeURIComponent(CHATS)}&dryRun=true`, ['60/1m'])).changes).toEqual([
      { target: ofRoute, before: ['50/1m'], after: ['60/1m'], warnings: [] },
    ]);
    expect((await change('&dryRun=true', ['1000/1m'])).changes).toMatchObject([
      { before: ['30/1m'], warnings: [expect.stringContaining('33 times more: 30/1m would become 1000/1m.')] },
    ]);
    expect(await change('', ['1000/1m'])).toMatchObject({
      status: 422,
      detail: expect.stringContaining('33 times more'),
    });
    await other.stop();
  });

  it.each<[string, string, object, Record<string, string>, string | RegExp]>([
    ['PUT', '/v1/limit', { windows: ['1/1m', '2/1m'] }, {}, /duration/],
    ['PUT', '/v1/limit', { windows: ['-1/1m'] }, {}, /^windows/],
    ['PUT', '/v1/limit', { windows: 'recommended' }, {}, 'windows: headgate has no recommendation for this limit'],
    ['PUT', '/v1/limit', {}, {}, /^windows/],
    ['PUT', '/v1/limit?account=a&provider=b', { windows: ['1/1m'] }, {}, /only one of account, provider and plan/],
    ['PUT', '/v1/limit?plan=pro', { windows: ['1/1m'] }, {}, /pro/],
    ['PUT', ACC, { windows: ['900/1m'], forMs: 0 }, {}, 'forMs: must be at least 1, got 0'],
    ['PUT', ACC, { windows: ['900/1m'], until: '2020-01-01T00:00:00Z' }, {}, /until/],
    ['PUT', ACC, { windows: ['900/1m'] }, { 'if-match': '17' }, /^If-Match: must be the etag/],
    ['PUT', ACC, { windows: ['900/1m'] }, { 'if-none-match': '"1"' }, /^If-None-Match: must be \*/],
    [
      'PUT',
      ACC,
      { windows: ['900/1m'] },
      { 'if-match': '"0"', 'if-none-match': '*' },
      'If-None-Match: must not be given beside If-Match',
    ],
    [
      'PUT',
      '/v1/limit?account=acc_1x',
      { windows: ['900/1m'] },
      {},
      'account: the config has no such account: "acc_1x", did you mean "acc_1"?',
    ],
    [
      'PUT',
      '/v1/limit?route=GET%20/none',
      { windows: ['900/1m'] },
      {},
      /^route: the config has no such route: "GET \/none"/,
    ],
    [
      'PUT',
      '/v1/limit?provider=none&dryRun=true',
      { windows: ['900/1m'] },
      {},
      /^provider: the config has no such provider/,
    ],
    [
      'POST',
      '/v1/limits/batch',
      {
        changes: [
          { target: {}, windows: ['900/1m'] },
          { target: { account: 'none' }, windows: ['900/1m'] },
        ],
      },
      {},
      /^changes\[1\]\.target\.account: the config has no such account/,
    ],
    ['POST', '/v1/limits/batch', { changes: [] }, {}, /^changes/],
    [
      'POST',
      '/v1/limits/batch',
      { changes: [{ target: { x: '1' }, windows: null }] },
      {},
      /changes\[0\].target.x: unknown option/,
    ],
  ])('%s %s %j %j: 422 with the place, and nothing changes', async (method, path, json, headers, detail) => {
    const problem = expectProblem(await ask(method, path, { json, headers }), 422, 'errors/unprocessable_entity');
    expect(problem.detail).toEqual(typeof detail === 'string' ? detail : expect.stringMatching(detail));
    expect((await ask('GET', '/v1/limits')).value.revision).toBe('0');
  });

  it('a viewer changes nothing', async () => {
    const json = { windows: ['900/1m'] };
    expectProblem(await ask('PUT', ACC, { json, as: 'viewer' }), 403, 'errors/insufficient_permissions');
    expect((await ask('GET', '/v1/limits')).value.revision).toBe('0');
  });

  it('the recommended windows of a provider', async () => {
    const { value } = await put('/v1/limit?provider=linkedin', { windows: 'recommended', confirm: true });
    expect(value.recommended.length).toBeGreaterThan(0);
    expect(value.effective).toEqual(value.recommended);
  });
});

describe('many limits', () => {
  const changes = [
    { target: { account: 'acc_1' }, windows: ['500/1m'] },
    { target: { provider: 'mock', route: CHATS }, windows: ['40/1m'], version: 0 },
  ];

  it('all or none; a list, by pages and filters; the history of one limit', async () => {
    const wrong = [...changes, { target: { account: 'acc_2' }, windows: ['500/1m'], version: 7 }];
    expect((await ask('POST', '/v1/limits/batch', { json: { changes: wrong } })).status).toBe(412);
    expect((await ask('GET', '/v1/limits?adjusted=true')).value.limits).toEqual([]);
    const { value } = await ask('POST', '/v1/limits/batch', { json: { changes, reason: 'both' } });
    expect(value.limits.map((each: { effective: string[] }) => each.effective)).toEqual([['500/1m'], ['40/1m']]);
    const first = (await ask('GET', '/v1/limits?limit=2')).value;
    const second = (await ask('GET', `/v1/limits?limit=2&cursor=${first.next}`)).value;
    const targets = [...first.limits, ...second.limits].map(({ target }) => target);
    expect(targets).toEqual([{ account: 'acc_1' }, {}, { provider: 'mock', route: CHATS }]);
    expect(second.next).toBeNull();
    const ofProvider = (await ask('GET', '/v1/limits?layer=provider&name=mock')).value.limits;
    expect(ofProvider).toMatchObject([{ base: ['50/1m'], effective: ['40/1m'], adjusted: { by: 'olaf', version: 1 } }]);
    const reset = [{ target: { account: 'acc_1' }, windows: null }];
    await ask('POST', '/v1/limits/batch', { json: { changes: reset } });
    const history = (await ask('GET', '/v1/limits/history?account=acc_1')).value;
    expect(history).toMatchObject({
      next: null,
      entries: [{ version: 2 }, { version: 1, reason: 'both', source: 'change' }],
    });
    expect(history.entries[0].changes).toEqual([
      { target: { account: 'acc_1' }, old: ['500/1m'], new: null, until: null },
    ]);
    expect((await ask('GET', '/v1/limits/history?before=2&limit=1')).value).toMatchObject({
      next: 1,
      entries: [{ version: 1 }],
    });
  });

  it('a page of the limits of many accounts does not stop the traffic', async () => {
    const ids = Array.from({ length: 5_000 }, (_, i) => `many_${i}`);
    const limits = { ...LIMITS, accounts: Object.fromEntries(ids.map((id) => [id, { allMethods: ['60/1m'] }])) };
    const accounts = ids.map((id) => ({ id, application: 'app_1' }));
    const large = await startAdminGateway(upstream.url, { limits, accounts });
    const cpuMs = startCpuTimer();
    const reply = await large.admin('GET', '/v1/limits?limit=1');
    expect(reply.status).toBe(200);
    // If every limit were shown with a copy of all of them, it would take 10 seconds.
    expect(cpuMs()).toBeLessThan(3_000);
    await large.stop();
  });

  it('the export is a config that gives the same limits without any adjustment', async () => {
    await ask('POST', '/v1/limits/batch', { json: { changes } });
    await put('/v1/limit', { windows: ['800/1m'] });
    const limits = (await ask('GET', '/v1/limits/export')).value;
    expect(limits.default.allMethods).toEqual({ windows: ['800/1m'], scope: 'account' });
    const effective = async (from: AdminGateway) =>
      JSON.parse(
        (await from.admin('GET', `/v1/effective?account=acc_1&route=${encodeURIComponent(CHATS)}`)).text,
      ).limits.map(({ windows }: { windows: string[] }) => windows);
    const other = await startAdminGateway(upstream.url, { limits });
    expect(await effective(other)).toEqual(await effective(gateway));
    expect(await effective(other)).toEqual([['40/1m'], ['500/1m']]);
    await other.stop();
  });

  it('the processes: this one, with the change that it obeys', async () => {
    const { revision } = (await put(ACC, { windows: ['500/1m'] })).value;
    await expect
      .poll(async () => (await ask('GET', '/v1/instances')).value.instances)
      .toEqual([
        {
          ...{ name: expect.any(String), self: true, host: hostname(), version: expect.any(String), startedAt: at },
          ...{ state: 'serving', breaker: 'closed', decisionsPerSecond: expect.any(Number) },
          ...{ revision, ageMs: expect.any(Number) },
        },
      ]);
    expect((await ask('GET', '/v1/status')).value.limits).toMatchObject({ revision, source: 'store', adjustments: 1 });
  });
});
