/** A reload swaps the rules between two requests. Counters, claims and running requests stay. */

import { join } from 'node:path';
import { createFileAdjustments } from 'headgate/file';
import { createSharedLimits } from 'headgate/shared-limits';
import { eventually, openRaw, pause, rawRequest, send } from 'headgate-testbed/raw-http';
import { answer, held, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../src/config/config.ts';
import { EFFECTS } from '../src/config/config-change.ts';
import { configOf, ratesOf, scratchFolder, TOKEN } from './support/gateway.ts';
import { type InProcess, startInProcess } from './support/in-process.ts';

const CHATS = '/api/v1/chats?account_id=acc_1';
const anyPort = { host: '127.0.0.1', port: 0 };

/** Of a limited route of the config. */
const DESCRIPTOR = { entries: [{ key: 'account' }], route: 'GET /api/v1/chats', account: '{account}' };

const fullConfig = (upstream: string, rest: Record<string, unknown> = {}): Record<string, unknown> => ({
  listen: anyPort,
  admin: anyPort,
  decisions: anyPort,
  ...configOf(upstream, rest),
});
const reload = (gateway: InProcess, config: Record<string, unknown>) =>
  gateway.gateway.reload(checkConfig(config, 'test'));

type Probe = (gateway: InProcess, upstream: Upstream) => Promise<unknown>;

const statusOf =
  (method: string, path: string, body?: string): Probe =>
  async (gateway) =>
    (await gateway.ask(method, path, {}, body === undefined ? {} : { body })).status;
const JSON_OF_22 = { 'content-type': 'application/json', 'content-length': '22' };
const partialBody: Probe = async ({ port }) => {
  const connection = await openRaw(port);
  connection.write(`${rawRequest('POST', '/named', { ...JSON_OF_22, 'x-api-key': TOKEN })}{"account":`);
  await Promise.race([connection.waitFor(1), pause(400)]);
  connection.write('"acc_1"   }');
  const [reply] = await connection.waitFor(1);
  connection.destroy();
  return reply?.status;
};
const ROUTES = [
  { route: 'GET /api/v1/chats', account: 'query.account_id' },
  { route: 'POST /named', account: 'body.account' },
  { route: 'POST /once', idempotent: true },
  { route: 'GET /api/special' },
  { route: 'GET /api/{name}' },
  { route: 'GET /elsewhere', upstream: 'other' },
  { route: 'GET /by-address', account: 'address' },
];
const NOWHERE = 'http://127.0.0.1:1';

/** Key, its value before (undefined: the default) and after the reload, and what a request shows before and after. */
const RELOADED: readonly [key: string, before: unknown, after: unknown, probe: Probe, shows: readonly unknown[]][] = [
  ['$schema', undefined, 'x', statusOf('GET', CHATS), [200, 200]],
  ['upstream', undefined, NOWHERE, statusOf('GET', CHATS), [200, 503]],
  ['upstreams', undefined, (url: string) => ({ other: url }), statusOf('GET', '/elsewhere'), [503, 200]],
  ['providers', undefined, { mock: { upstream: 'other' } }, statusOf('GET', CHATS), [200, 503]],
  [
    'cors',
    undefined,
    { origins: ['https://app.example'] },
    async (gateway) =>
      (await gateway.ask('GET', CHATS, { origin: 'https://app.example' })).headers['access-control-allow-origin'],
    [undefined, 'https://app.example'],
  ],
  [
    'forwardFields',
    undefined,
    ['x-real-ip'],
    async (gateway, upstream) => {
      await gateway.ask('GET', CHATS, { 'x-real-ip': '::1' });
      return upstream.last().headers['x-real-ip'];
    },
    [undefined, '::1'],
  ],
  ['upstreamTimeoutMs', undefined, 50, statusOf('GET', '/api/late-head'), [200, 504]],
  [
    'upstreamAnswerMs',
    undefined,
    50,
    async (gateway) => (await gateway.ask('GET', '/api/late-body')).broken,
    [false, true],
  ],
  ['clientTimeoutMs', undefined, 100, partialBody, [200, 408]],
  ['maxBodyBytes', undefined, 3, statusOf('POST', '/once', 'long'), [200, 413]],
  [
    'headers',
    undefined,
    'ietf',
    async (gateway) => (await gateway.ask('GET', CHATS)).headers['ratelimit-policy'],
    [undefined, '"all-methods-1m";q=1000;w=60'],
  ],
  [
    'idempotency',
    { secret: 'a secret of one config' },
    { secret: 'the secret of another' },
    async (gateway) => (await gateway.ask('POST', '/once', { 'idempotency-key': 'k' }, { body: 'x' })).status,
    [200, 409],
  ],
  ['keys', undefined, [{ token: 'another', application: 'app_1' }], statusOf('GET', CHATS), [200, 401]],
  ['perAddress', undefined, ['0/1m'], statusOf('GET', CHATS), [200, 422]],
  [
    'clientAddress',
    undefined,
    { trustedProxies: ['loopback'] },
    async (gateway) => {
      const replies = ['192.0.2.1', '192.0.2.2'].map((address) =>
        gateway.ask('GET', '/by-address', { 'x-forwarded-for': address }),
      );
      return Math.min(...(await Promise.all(replies)).map((reply) => ratesOf(reply).remaining ?? 0));
    },
    [998, 999],
  ],
  ['accounts', undefined, [], statusOf('GET', CHATS), [200, 404]],
  ['routes', undefined, ROUTES.slice(1), statusOf('GET', CHATS), [200, 404]],
  ['strictSiblings', undefined, true, statusOf('GET', '/api/SPECIAL'), [200, 404]],
  [
    'log',
    undefined,
    { application: true },
    async (gateway) => {
      const before = gateway.lines().length;
      await gateway.ask('GET', CHATS);
      return (await eventually(() => gateway.lines()[before], 'the line')).application;
    },
    [undefined, 'app_1'],
  ],
  [
    'limits',
    undefined,
    { default: { allMethods: ['500/1m'] } },
    async (gateway) => ratesOf(await gateway.ask('GET', CHATS)).limit,
    [1000, 500],
  ],
  [
    'shadow',
    undefined,
    { limits: { default: { allMethods: ['0/1m'] } } },
    async (gateway) => {
      await gateway.ask('GET', CHATS);
      return (await gateway.metrics()).includes('current="accepted",candidate="rejected"} 1');
    },
    [false, true],
  ],
];

/** Keys that a reload leaves as they were. */
const KEPT: readonly [path: string, after: unknown][] = [
  ['listen.host', '127.0.0.2'],
  ['listen.port', 1],
  ['admin.host', '127.0.0.2'],
  ['admin.port', 1],
  ['admin', undefined],
  ['decisions.host', '127.0.0.2'],
  ['decisions.port', 1],
  ['decisions', undefined],
  ['rateLimitService.host', '127.0.0.2'],
  ['rateLimitService.port', 1],
  ['rateLimitService', undefined],
  ['store', 'redis://127.0.0.1:1'],
  ['upstreamIdleMs', 1],
  ['maxUpstreamConnections', 1],
  ['maxBufferedBytes', 0],
  ['maxConnections', 1],
  ['storeDeadlineMs', 1],
  ['workers', 2],
  ['onStoreFailure', 'refuse'],
  ['leases', true],
  ['perApplication', { maxRequests: 1 }],
  ['adjustments', { refreshMs: 1_000 }],
];

/** The test of Envoy's rate limit service reloads them. */
const SERVICE_RELOADED = ['rateLimitService.insecure', 'rateLimitService.domains'];

/** What a reload applies to the next request for the Admin API. */
const ADMIN_RELOADED = ['admin.tokens', 'admin.hosts', 'admin.console', 'admin.insecure'];

/** Answers late on two paths. */
const startSlowUpstream = () =>
  startUpstream(async (seen, response, request) => {
    if (seen.url === '/api/late-head') await pause(300);
    if (seen.url === '/api/late-body') {
      response.writeHead(200, { 'content-length': 4 }).write('la');
      await pause(300);
      response.end('te');
      return;
    }
    await answer()(seen, response, request);
  });

describe('a reload', () => {
  it('every key of the config has a row here', () => {
    const tested = [...RELOADED, ...KEPT]
      .map(([path]) => path)
      .concat('drainMs', 'shutdownDelayMs', 'decisions.secret', SERVICE_RELOADED, ADMIN_RELOADED);
    const pathsOf = ([key, effect]: [string, unknown]): string[] =>
      typeof effect === 'string' ? [key] : Object.keys(effect as object).map((name) => `${key}.${name}`);
    // Certificates have tests of their own.
    const paths = Object.entries(EFFECTS)
      .flatMap(pathsOf)
      .filter((path) => !path.endsWith('.tls'));
    expect(tested.filter((path) => !['admin', 'decisions', 'rateLimitService'].includes(path)).sort()).toEqual(
      paths.sort(),
    );
  });

  it.each(RELOADED)('applies `%s` to the next request', async (key, before, after, probe, shows) => {
    const upstream = await startSlowUpstream();
    const config: Record<string, unknown> = fullConfig(upstream.url, { routes: ROUTES, upstreams: { other: NOWHERE } });
    if (before !== undefined) config[key] = before;
    const gateway = await startInProcess(config);
    const shown = [await probe(gateway, upstream)];
    const value = typeof after === 'function' ? after(upstream.url) : after;
    expect(await reload(gateway, { ...config, [key]: value })).toEqual({ changed: [key], needsRestart: [] });
    shown.push(await probe(gateway, upstream));
    expect(shown).toEqual(shows);
  });

  it('applies `decisions.secret` to the next decision, and its other rules with it', async () => {
    const config = (secret: string | undefined, max: string) =>
      fullConfig(NOWHERE, {
        decisions: { ...anyPort, ...(secret === undefined ? {} : { secret }) },
        routes: [{ route: 'GET /counted', account: 'key' }],
        limits: { default: { allMethods: [max] } },
      });
    const gateway = await startInProcess(config(undefined, '5/1m'));
    const decide = async () => {
      const headers = { 'x-api-key': TOKEN, 'content-type': 'application/json' };
      const ask = { method: 'POST', path: '/v1/decisions', headers, body: '{"route":"GET /counted"}' };
      const { receipt, windows } = JSON.parse((await send(gateway.decisionsPort, ask)).text);
      return [typeof receipt, windows[0].max];
    };
    expect(await decide()).toEqual(['object', 5]);
    const wanted = config('a-secret-of-receipts-0123456789abcdef', '7/1m');
    expect(await reload(gateway, wanted)).toEqual({ changed: ['decisions.secret', 'limits'], needsRestart: [] });
    expect(await decide()).toEqual(['string', 7]);
  });

  it('applies `shutdownDelayMs` to the next stop', async () => {
    const config = fullConfig('http://127.0.0.1:1');
    const gateway = await startInProcess(config);
    expect(await reload(gateway, { ...config, shutdownDelayMs: 100 })).toEqual({
      changed: ['shutdownDelayMs'],
      needsRestart: [],
    });
    const stopped = gateway.stop();
    expect((await gateway.ask('GET', '/api/v1/open')).status).toBe(503);
    expect(await stopped).toBe(0);
  });

  it('applies `upstream`, `upstreams` and `providers` to the next request; running ones finish where they are', async () => {
    const hold = held();
    const [first, second, third] = await Promise.all([startUpstream(hold.behaviour), startUpstream(), startUpstream()]);
    const config = (upstream: string, social: string, provider: string) =>
      fullConfig(upstream, {
        upstreams: { social },
        providers: { [provider]: { upstream: 'social' } },
        routes: [{ route: 'GET /open' }, { route: 'GET /api/v1/chats', account: 'query.account_id' }],
      });
    const gateway = await startInProcess(config(first.url, first.url, 'mock'));
    const running = ['/open', CHATS].map((path) => gateway.ask('GET', path));
    await eventually(() => hold.waiting() === 2, 'the requests at the first upstream');
    const keys = { changed: ['upstream', 'upstreams'], needsRestart: [] };
    expect(await reload(gateway, config(second.url, third.url, 'mock'))).toEqual(keys);
    for (const path of ['/open', CHATS]) expect((await gateway.ask('GET', path)).status).toBe(200);
    expect([second, third].map(({ seen }) => seen.length)).toEqual([1, 1]);
    await reload(gateway, config(second.url, third.url, 'another'));
    expect((await gateway.ask('GET', CHATS)).status).toBe(200);
    expect([second, third].map(({ seen }) => seen.length)).toEqual([2, 1]);
    hold.release();
    for (const reply of await Promise.all(running)) expect(reply).toMatchObject({ status: 200, text: '{"ok":true}' });
    expect(first.seen).toHaveLength(2);
  });

  it('applies `admin.tokens`, `admin.hosts` and `admin.insecure` to the next request for the Admin API', async () => {
    const config = (admin: object) => fullConfig(NOWHERE, { admin: { ...anyPort, ...admin } });
    const tokens = [{ name: 'vera', token: 'a-token-of-the-admin-api' }];
    const hosts = ['ops.example.com'];
    const gateway = await startInProcess(config({}));
    const shown = async (host = 'localhost') => {
      const headers = { host, authorization: 'Bearer a-token-of-the-admin-api' };
      return (await send(gateway.adminPort, { path: '/v1/status', headers })).status;
    };
    expect(await shown()).toBe(404);
    expect(await reload(gateway, config({ tokens }))).toEqual({ changed: ['admin.tokens'], needsRestart: [] });
    expect([await shown(), await shown('ops.example.com')]).toEqual([200, 403]);
    const last = config({ tokens, hosts, insecure: true });
    expect(await reload(gateway, last)).toEqual({ changed: ['admin.hosts', 'admin.insecure'], needsRestart: [] });
    expect(await shown('ops.example.com')).toBe(200);
  });

  it('applies `drainMs` to the next stop', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const config = fullConfig(upstream.url, { drainMs: 600_000 });
    const gateway = await startInProcess(config);
    const hanging = gateway.ask('GET', CHATS).catch(() => 'cut off');
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    expect(await reload(gateway, { ...config, drainMs: 50 })).toEqual({ changed: ['drainMs'], needsRestart: [] });
    expect(await gateway.stop()).toBe(1);
    expect(await hanging).toBe('cut off');
    hold.release();
  });

  it.each(KEPT)('leaves `%s` as it was, and says that it needs a restart', async (path, after) => {
    const upstream = await startUpstream();
    const config = fullConfig(upstream.url, { rateLimitService: { port: 0, domains: { api: [DESCRIPTOR] } } });
    const gateway = await startInProcess(config);
    const checked = checkConfig({ ...config, limits: { default: { allMethods: ['500/1m'] } } }, 'test');
    // Some values would be faults without others, so they are not checked.
    const [section = '', key] = path.split('.');
    const value = key === undefined ? after : { ...checked[section as 'listen'], [key]: after };
    const changed = { ...checked, [section]: value } as typeof checked;
    // What can be applied is applied.
    expect(await gateway.gateway.reload(changed)).toEqual({ changed: ['limits'], needsRestart: [path] });
    // It is compared with what the process has, not with the last file.
    expect(await gateway.gateway.reload(changed)).toEqual({ changed: [], needsRestart: [path] });
    expect(await reload(gateway, config)).toEqual({ changed: ['limits'], needsRestart: [] });
    for (let i = 0; i < 3; i++) expect((await gateway.ask('GET', CHATS)).status).toBe(200);
    expect(await gateway.metrics()).toContain('headgate_memory_store_keys 1');
  });

  it('S10: counters stay, whatever the limit is, also those of an account that was away', async () => {
    const upstream = await startUpstream();
    const config = (max: number, rest = {}) =>
      fullConfig(upstream.url, { limits: { default: { allMethods: [`${max}/1h`] } }, ...rest });
    const gateway = await startInProcess(config(5));
    await gateway.ask('GET', CHATS);
    await gateway.ask('GET', CHATS);
    await reload(gateway, config(10));
    expect(ratesOf(await gateway.ask('GET', CHATS))).toMatchObject({ limit: 10, remaining: 7 });
    await reload(gateway, config(3));
    expect((await gateway.ask('GET', CHATS)).status).toBe(429);
    await reload(gateway, config(3, { accounts: [] }));
    expect((await gateway.ask('GET', CHATS)).status).toBe(404);
    await reload(gateway, config(5));
    expect(ratesOf(await gateway.ask('GET', CHATS))).toMatchObject({ limit: 5, remaining: 1 });
  });

  it.each(['memory', 'redis://127.0.0.1:1'])('S18: accounts that a reload adds find room (%s)', async (store) => {
    const upstream = await startUpstream();
    const accounts = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => ({ id: `acc_${from + i}`, application: 'app_1' }));
    const config = (from: number, count: number) =>
      fullConfig(upstream.url, { store, accounts: accounts(from, count) });
    const gateway = await startInProcess(config(0, 1));
    for (let round = 0; round < 5; round++) {
      await reload(gateway, config(round * 20, 20));
      for (let i = 0; i < 20; i++) {
        const reply = await gateway.ask('GET', `/api/v1/chats?account_id=acc_${round * 20 + i}`);
        expect(reply.status).toBe(200);
      }
    }
  });

  it('a running request keeps the rules that it began with, and its outcome is replayed under the new ones', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const routes = [{ route: 'POST /once', account: 'query.account_id', idempotent: true }];
    const config = (rest: Record<string, unknown>) => fullConfig(upstream.url, { routes, ...rest });
    const gateway = await startInProcess(config({}));
    const ask = () =>
      gateway.ask('POST', '/once?account_id=acc_1', { 'idempotency-key': 'k', 'x-real-ip': '::1' }, { body: 'x' });
    const running = ask();
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    await reload(gateway, config({ keys: [], limits: { default: { allMethods: ['7/1m'] } } }));
    expect((await ask()).status).toBe(401);
    hold.release();
    expect(ratesOf(await running)).toMatchObject({ limit: 1000, remaining: 999 });
    await reload(gateway, config({ limits: { default: { allMethods: ['7/1m'] } } }));
    const replay = await ask();
    expect(replay).toMatchObject({ status: 200, text: '{"ok":true}' });
    expect(replay.headers['idempotency-replayed']).toBe('true');
    expect(upstream.seen).toHaveLength(1);
  });
});

it('a limit of the config that changes beneath an adjustment is logged, and does not apply', async () => {
  const upstream = await startUpstream();
  const file = join(scratchFolder(), 'limits.json');
  const limitsOf = (max: number) => ({
    default: { allMethods: ['9/1h'] },
    accounts: { acc_1: { allMethods: [`${max}/1h`] } },
  });
  const withLimit = (max: number) =>
    fullConfig(upstream.url, { store: 'memory', adjustments: { file }, limits: limitsOf(max) });
  const writer = createSharedLimits({ base: limitsOf(20), adjustments: createFileAdjustments(file) });
  await writer.put({ account: 'acc_1' }, ['30/1h'], { by: 'jane' });
  await writer.close();
  const gateway = await startInProcess(withLimit(20));
  await reload(gateway, withLimit(40));
  const line = await eventually(() => gateway.lines().find(({ count }) => count === 1), 'the line');
  expect(line).toMatchObject({
    msg: 'limits of the config changed, but adjustments of them go on to apply',
    limits: ['limits.accounts["…"].allMethods'],
  });
  expect(ratesOf(await gateway.ask('GET', CHATS)).limit).toBe(30);
  await reload(gateway, withLimit(40));
  expect(gateway.lines().filter(({ count }) => count === 1)).toHaveLength(1);
});
