/** Every error in a config is listed with its path in the file. */
import { describe, expect, it } from 'vitest';
import { checkConfig, type Path, pathPattern } from '../support/check-config.ts';
import { type Config, configOf } from '../support/gateway.ts';

const good = (rest: Config = {}) => configOf('http://127.0.0.1:9', rest);
const limits = (rest: Config) => good({ limits: rest });
const routes = (...list: Config[]) => good({ routes: list, limits: { unlimited: true } });
const key = (rest: Config) => good({ keys: [{ token: 't', application: 'app_1', role: 'account' }, rest] });
const account = (rest: Config) =>
  good({ accounts: [{ id: 'acc_1', application: 'app_1', provider: 'mock' }, rest], limits: { unlimited: true } });

const faults: [title: string, config: Config, ...paths: Path[]][] = [
  ['limits without any window', limits({}), ['limits']],
  ['limits that are missing, beside a route with an account', good({ limits: undefined }), ['limits']],
  [
    'unlimited, beside a window',
    limits({ unlimited: true, default: { allMethods: ['1/1m'] } }),
    ['limits'],
    ['unlimited'],
  ],
  ['an unknown option', good({ drainMS: 1 }), ['drainMS']],
  ['an unknown option inside', good({ listen: { hots: '127.0.0.1' } }), ['listen'], ['hots']],
  ['a port out of range', good({ listen: { port: 70_000 } }), ['listen', 'port']],
  ['a port that is text', good({ listen: { port: '8080' } }), ['listen', 'port']],
  ['an upstream that is not a URL', good({ upstream: 'nowhere' }), ['upstream']],
  ['an upstream of another protocol', good({ upstream: 'ftp://127.0.0.1/' }), ['upstream']],
  ['an upstream with a query', good({ upstream: 'http://127.0.0.1:9/?a=1' }), ['upstream']],
  ['a negative time-out', good({ upstreamTimeoutMs: -1 }), ['upstreamTimeoutMs']],
  ['a fractional bound', good({ maxBodyBytes: 1.5 }), ['maxBodyBytes']],
  ['a drainMs that is text', good({ drainMs: '10s' }), ['drainMs']],
  ['an unknown style of headers', good({ headers: 'x-rate' }), ['headers']],
  ['an unknown store', good({ store: 'postgres://127.0.0.1' }), ['store']],
  ['an unknown failure policy', good({ onStoreFailure: 'pray' }), ['onStoreFailure']],
  ['keys that are not an array', good({ keys: {} }), ['keys']],
  ['a key with neither sha256 nor token', key({ application: 'app_1', role: 'account' }), ['keys', 1]],
  ['an invalid sha256', key({ sha256: 'abc', application: 'app_1', role: 'account' }), ['keys', 1, 'sha256']],
  ['a key without an application', key({ token: 'x', role: 'account' }), ['keys', 1, 'application']],
  ['an unknown role', key({ token: 'x', application: 'app_1', role: 'root' }), ['keys', 1, 'role']],
  ['a scoped key without a scope', key({ token: 'x', application: 'app_1', role: 'scoped' }), ['keys', 1]],
  [
    'an expiry that is not a date',
    key({ token: 'x', application: 'app_1', role: 'account', expiresAt: 'soon' }),
    ['keys', 1, 'expiresAt'],
  ],
  ['an account without an id', account({ application: 'app_1', provider: 'mock' }), ['accounts', 1, 'id']],
  ['an empty account id', account({ id: '', application: 'app_1', provider: 'mock' }), ['accounts', 1, 'id']],
  ['two accounts with one id', account({ id: 'acc_1', application: 'app_1', provider: 'mock' }), ['accounts', 1]],
  ['one id in two applications', account({ id: 'acc_1', application: 'app_2', provider: 'mock' }), ['accounts', 1]],
  ['a route without a method', routes({ route: '/api' }), ['routes', 0, 'route']],
  ['a route without a path', routes({ route: 'GET' }), ['routes', 0, 'route']],
  ['a route twice', routes({ route: 'GET /a' }, { route: 'GET /a' }), ['routes', 1]],
  ['an account from an unknown place', routes({ route: 'GET /a', account: 'cookie.id' }), ['routes', 0, 'account']],
  ['an account without a name', routes({ route: 'GET /a', account: 'query.' }), ['routes', 0, 'account']],
  ['a path parameter the route lacks', routes({ route: 'GET /a/{b}', account: 'path.c' }), ['routes', 0, 'account']],
  ['a malformed limit', limits({ default: { allMethods: ['60 a minute'] } }), ['limits', 'default', 'allMethods', 0]],
  ['a limit of zero duration', limits({ default: { allMethods: ['60/0s'] } }), ['limits', 'default', 'allMethods', 0]],
  ['a negative limit', limits({ default: { allMethods: ['-1/1s'] } }), ['limits', 'default', 'allMethods', 0]],
  ['a fractional limit', limits({ default: { allMethods: ['1.5/1s'] } }), ['limits', 'default', 'allMethods', 0]],
  ['a limit of an unknown unit', limits({ default: { allMethods: ['1/1w'] } }), ['limits', 'default', 'allMethods', 0]],
  [
    'S3: two equal durations',
    limits({ default: { allMethods: ['1/60s', '2/1m'] } }),
    ['limits', 'default', 'allMethods'],
  ],
  [
    'a bad limit of a provider',
    limits({ providers: { mock: { allMethods: ['1/1m', 'x'] } } }),
    ['limits', 'providers', 'mock', 'allMethods', 1],
  ],
  [
    'a bad limit of a route',
    limits({ default: { routes: { 'GET /api/v1/chats': ['x'] } } }),
    ['limits', 'default', 'routes', 'GET /api/v1/chats', 0],
  ],
  [
    'a limit for a route that the file does not have',
    limits({ default: { routes: { 'GET /nope': ['1/1m'] } } }),
    ['limits', 'default', 'routes', 'GET /nope'],
  ],
  [
    "a provider's limit for a route that the file does not have",
    limits({ providers: { mock: { routes: { 'PUT /api/v1/chats': ['1/1m'] } } } }),
    ['limits', 'providers', 'mock', 'routes', 'PUT /api/v1/chats'],
  ],
  [
    'a limit for an account that the file does not have',
    limits({ accounts: { nobody: { allMethods: ['1/1m'] } } }),
    ['limits', 'accounts', 'nobody'],
  ],
  [
    'a limit for an account called constructor that the file does not have',
    limits({ accounts: { constructor: { allMethods: ['1/1m'] } } }),
    ['limits', 'accounts', 'constructor'],
  ],
  ['an unknown option in a layer', limits({ default: { allMethod: [] } }), ['limits', 'default'], ['allMethod']],
];

describe('check', () => {
  it.each(faults)('exit 2: %s', async (_title, config, ...paths) => {
    const { code, all } = await checkConfig(config);
    expect({ code, all }).toEqual({ code: 2, all: expect.any(String) });
    for (const path of paths) expect(all).toMatch(pathPattern(path));
    expect(all).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
  });

  it('a limit for __proto__, which the file does not have, is an error too', async () => {
    const text = JSON.stringify(limits({ accounts: { PROTO: { allMethods: ['1/1m'] } } })).replace(
      'PROTO',
      '__proto__',
    );
    const { code, all } = await checkConfig(text);
    expect({ code, all }).toEqual({ code: 2, all: expect.stringContaining('__proto__') });
  });

  it('lists every error that needs two values too', async () => {
    const config = good({
      accounts: [1, 1, 2].map((n) => ({ id: `acc_${n}`, application: 'app_1', provider: 'mock' })),
      limits: { default: { routes: { 'GET /no1': [], 'GET /no2': [] } }, accounts: { nobody: {} } },
    });
    const { code, all } = await checkConfig(config);
    expect(code).toBe(2);
    for (const word of ['GET /no1', 'GET /no2', 'nobody']) expect(all).toContain(word);
    expect(all).toMatch(pathPattern(['accounts', 1]));
  });
});

it.each(['', '{"a":1,}', 'null', '"text"'])('exit 2: the file is %j', async (text) => {
  const { code, all } = await checkConfig(text);
  expect({ code, all: all.trim() }).toEqual({ code: 2, all: expect.stringMatching(/./) });
  expect(all).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
});
