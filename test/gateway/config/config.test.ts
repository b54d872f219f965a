import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkConfig, type Overrides, parseConfig } from '../../../src/gateway/config/config.ts';
import { ConfigError } from '../../../src/gateway/config/config-error.ts';
import { limitsOf } from '../../../src/gateway/config/limits.ts';
import { jsonSchema } from '../../../src/gateway/config/schema.ts';

const HASH = 'a'.repeat(64);

/** Every fault as `path: reason`. */
function faultsOf(config: unknown, overrides: Overrides = {}): string[] {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  try {
    parseConfig(text, 'test.json', overrides);
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map(({ path, reason }) => `${path}: ${reason}`);
    throw error;
  }
  return [];
}

describe('defaults', () => {
  it('fills in every one of the contract', () => {
    expect(checkConfig({}, 'test')).toEqual({
      listen: { host: '127.0.0.1', port: 8080 },
      store: 'memory',
      upstream: 'http://127.0.0.1:9000',
      upstreamTimeoutMs: 30_000,
      maxBodyBytes: 26_214_400,
      drainMs: 10_000,
      headers: 'x-ratelimit',
      storeDeadlineMs: 250,
      onStoreFailure: 'local',
      idempotency: {
        leaseMs: 30_000,
        waitMs: 10_000,
        retentionMs: 86_400_000,
        maxKeptBytes: 1_048_576,
        lateAnswerMs: 120_000,
        onOrphan: 'reject',
        onStoreFailure: 'refuse',
      },
      keys: [],
      accounts: [],
      routes: [],
      limits: { recommended: false, default: {}, providers: {}, accounts: {} },
    });
  });

  it('of admin, once it is there, and of keys and accounts', () => {
    const config = checkConfig(
      { admin: {}, keys: [{ sha256: HASH, application: 'a' }], accounts: [{ id: 'x', application: 'a' }] },
      'test',
    );
    expect(config.admin).toEqual({ host: '127.0.0.1', port: 8081 });
    expect(config.keys[0]).toEqual({ sha256: HASH, application: 'a', role: 'account', scope: null });
    expect(config.accounts[0]).toEqual({ id: 'x', application: 'a', scope: null });
  });
});

describe('JSON', () => {
  it.each([
    ['{', 'line 1, column 2: a name in double quotes expected, but the file ends'],
    ['{\n  "keys": [1,]\n}', 'line 2, column 14: a JSON value expected'],
    ['{"a": 1 "b": 2}', 'line 1, column 9: "," or "}" expected'],
    ['{"a": 01}', 'line 1, column 8: "," or "}" expected'],
    ["{'a': 1}", 'line 1, column 2: a name in double quotes expected'],
    ['{} x', 'line 1, column 4: more text after the end of the JSON value'],
    ['', 'line 1, column 1: a JSON value expected, but the file ends'],
    ['{"upstream": "http://a",\n "upstream": "http://b"}', 'line 2, column 2: "upstream" stands twice in one object'],
    ['{"a": "\u0001"}', 'line 1, column 7: a JSON value expected'],
    [`${'['.repeat(100)}`, 'line 1, column 66: nested deeper than 64 levels'],
  ])('%j: says the line and the column', (text, fault) => {
    const [first] = faultsOf(text);
    expect(first?.replace('a string expected', 'a JSON value expected')).toBe(`: ${fault}`);
  });

  it('may begin with a byte order mark', () => {
    expect(faultsOf('\uFEFF{}')).toEqual([]);
  });
});

describe('faults', () => {
  it.each<[unknown, string[]]>([
    [[], [': must be of type object, is array']],
    [{ wat: 1 }, ['wat: is no option that headgate knows']],
    [
      { listen: { port: 65_536, hst: 'x' } },
      ['listen.port: must be at most 65535', 'listen.hst: is no option that headgate knows'],
    ],
    [{ admin: { port: 1.5 } }, ['admin.port: must be a whole number']],
    [{ admin: { port: 8080 } }, ['admin.port: is the port of listen too']],
    [{ headers: 'x' }, ['headers: must be one of "x-ratelimit", "ietf", "both", "none"']],
    [{ upstream: 'ftp://x' }, ['upstream: must be a URL with http:// or https://']],
    [{ upstream: 'http://x/?a=1' }, ['upstream: must have neither a query nor a fragment']],
    [{ upstream: 'http://u:p@x' }, ['upstream: must not have a user name or password in it']],
    [{ upstreamTimeoutMs: 0, drainMs: -1 }, ['upstreamTimeoutMs: must be at least 1', 'drainMs: must be at least 0']],
    [{ idempotency: { retentionMs: 86_400_001 } }, ['idempotency.retentionMs: must be at most 86400000']],
  ])('%j', (config, faults) => {
    expect(faultsOf(config)).toEqual(faults);
  });

  it.each<[object, string]>([
    [{ application: 'a' }, 'keys[0]: needs exactly one of sha256 and token'],
    [{ application: 'a', sha256: HASH, token: 't' }, 'keys[0]: needs exactly one of sha256 and token'],
    [{ application: 'a', sha256: 'zz' }, 'keys[0].sha256: must be the 64 hexadecimal digits of the SHA-256 of a token'],
    [{ token: 't' }, 'keys[0].application: is missing: a string'],
    [{ application: 'a', token: 't', role: 'scoped' }, 'keys[0].scope: a scoped key needs a scope'],
    [{ application: 'a', token: 't', scope: 's' }, 'keys[0].scope: only a key with the role "scoped" has a scope'],
    [{ application: 'a', token: 't', role: 'god' }, 'keys[0].role: must be one of "service", "account", "scoped"'],
    [
      { application: 'a', token: 't', expiresAt: '2027-02-30T00:00:00Z' },
      'keys[0].expiresAt: must be a time in ISO 8601 with its offset, such as "2027-01-01T00:00:00Z"',
    ],
  ])('a key %j', (key, fault) => {
    expect(faultsOf({ keys: [key] })).toEqual([fault]);
  });

  it('of a key never show the token', () => {
    const faults = faultsOf({ keys: [{ application: 'a', token: 'secret with spaces' }], store: 'redis:/u:secret@h' });
    expect(faults).toHaveLength(2);
    expect(faults.join()).not.toContain('secret');
  });

  it('two keys, accounts or routes that are one', () => {
    const config = {
      keys: [
        { token: 't', application: 'a' },
        { token: 't', application: 'b' },
      ],
      accounts: [
        { id: 'x', application: 'a' },
        { id: 'x', application: 'b' },
      ],
      routes: [{ route: 'GET /x/{a}' }, { route: 'GET /x/{b}' }, { route: 'POST /x/{a}' }],
    };
    expect(faultsOf(config)).toEqual([
      'keys[1]: is keys[0] again',
      'accounts[1].id: is the id of accounts[0] too',
      'routes[1].route: matches the same requests as routes[0]',
    ]);
  });

  it.each<[object, string]>([
    [{ route: 'get /x' }, 'routes[0].route: must be a method and a path, such as "POST /api/v1/emails"'],
    [{ route: 'GET x' }, 'routes[0].route: must be a method and a path, such as "POST /api/v1/emails"'],
    [{ route: 'BREW /x' }, 'routes[0].route: BREW is no method that can be routed'],
    [{ route: 'GET /x/*' }, 'routes[0].route: wildcards are not supported'],
    [{ route: 'GET /x//y' }, 'routes[0].route: has an empty segment (two slashes)'],
    [{ route: 'GET /x/../y' }, 'routes[0].route: a dot segment can never match: such requests are refused'],
    [{ route: 'GET /x/a{b}' }, 'routes[0].route: "a{b}": a parameter is a whole segment, such as {chat_id}'],
    [{ route: 'GET /x?y' }, 'routes[0].route: "x?y" has a character that stands in no path, or only encoded'],
    [{ route: 'GET /{a}/{a}' }, 'routes[0].route: has the parameter {a} twice'],
    [{ route: 'GET /healthz' }, "routes[0].route: /healthz is the gateway's own"],
    [
      { route: 'GET /x', account: 'cookie.a' },
      'routes[0].account: must be path.NAME, query.NAME, header.NAME or body.NAME',
    ],
    [{ route: 'GET /{a}', account: 'path.b' }, 'routes[0].account: the route has no parameter {b}'],
    [{ route: 'GET /x', account: 'header.a b' }, 'routes[0].account: "a b" is no header name'],
    [
      { route: 'GET /x', account: 'header.X-Api-Key' },
      'routes[0].account: the header X-Api-Key cannot name an account',
    ],
    [{ route: 'GET /x', idempotent: 1 }, 'routes[0].idempotent: must be true, false or an object'],
  ])('a route %j', (route, fault) => {
    expect(faultsOf({ routes: [route] })).toEqual([fault]);
  });

  it('S3: limits, each window with its place', () => {
    const routes = { 'POST /x': ['1/1s', '2/x', { max: -1, durationMs: 5 }, { max: 1, durationMs: 5, z: 1 }, 7] };
    const limits = { default: { routes, allMethods: ['1/1s', '2/1000ms'] }, providers: { p: { allMethods: '5/1s' } } };
    expect(faultsOf({ routes: [{ route: 'POST /x' }], limits })).toEqual([
      'limits.default.routes["POST /x"][1]: a duration is a whole number and a unit of ms, s, m, h, d, such as "30s", got "x"',
      'limits.default.routes["POST /x"][2].max: must be at least 0',
      'limits.default.routes["POST /x"][3].z: is no option that headgate knows',
      'limits.default.routes["POST /x"][4]: must be "60/1m" or { "max": 60, "durationMs": 60000 }',
      'limits.providers.p.allMethods: must be an array of windows, or { "windows": […], "scope": "account" }',
      'limits.default.allMethods: two windows of one limit need distinct durations, got "1s"',
    ]);
  });

  it('S1: All methods with a scope', () => {
    const limits = {
      default: { allMethods: { windows: ['1/1s', '2/1000ms'], scope: 'account' } },
      providers: { p: { allMethods: { windows: ['x'], scope: 'world', max: 1 } }, q: { allMethods: {} } },
    };
    expect(faultsOf({ limits })).toEqual([
      'limits.providers.p.allMethods.windows[0]: a window is max/duration, such as "60/1m", got "x"',
      'limits.providers.p.allMethods.scope: must be one of "route", "account"',
      'limits.providers.p.allMethods.max: is no option that headgate knows',
      'limits.providers.q.allMethods.windows: is missing: a array',
      'limits.default.allMethods.windows: two windows of one limit need distinct durations, got "1s"',
    ]);
  });

  it('a limit for what the file does not have', () => {
    const layer = { routes: { 'POST /q': [] } };
    expect(faultsOf({ limits: { providers: { p: layer }, accounts: { 'acc 1': layer } } })).toEqual([
      'limits.accounts["acc 1"]: the file has no such account',
      'limits.providers.p.routes["POST /q"]: the file has no such route',
      'limits.accounts["acc 1"].routes["POST /q"]: the file has no such route',
    ]);
  });

  it('an account may stand in the body, and a route may be idempotent, with options of its own', () => {
    const routes = [
      { route: 'POST /a', account: 'body.id', idempotent: true },
      { route: 'POST /b', idempotent: { onOrphan: 'reexecute', waitMs: 0 } },
      { route: 'POST /c', idempotent: false },
    ];
    expect(faultsOf({ routes })).toEqual([]);
    expect(faultsOf({ routes: [{ route: 'POST /a', idempotent: { wat: 1 } }] })).toEqual([
      expect.stringContaining('routes[0].idempotent.wat'),
    ]);
  });
});

describe('store', () => {
  it.each([
    'memory',
    'redis://h',
    'redis://u:p%40@h:1/2',
    'redis://:p@h:1',
    'rediss://[::1]:6379/0',
    'redis-cluster://a:1,b:2',
    'redis-cluster://u:p@a,b',
  ])('%s is one', (store) => expect(faultsOf({ store })).toEqual([]));

  it.each([
    'postgres://x',
    'redis://',
    'redis://h:99999',
    'redis://a:1,b:2',
    'redis://h/x',
    'redis://%zz@h',
    'redis-cluster://a:1/2',
    'redis-cluster://a:1,',
    '',
  ])('%j is none', (store) => {
    expect(faultsOf({ store })).toEqual([expect.stringMatching(/^store: must be memory, redis:/)]);
  });
});

describe('flags', () => {
  it('win over the file', () => {
    const file = { listen: { host: 'h', port: 1 }, upstream: 'http://file', store: 'redis://file' };
    const config = checkConfig(file, 'test', { port: '0', upstream: 'https://flag/base', store: 'memory' });
    expect(config.listen).toEqual({ host: 'h', port: 0 });
    expect(config).toMatchObject({ upstream: 'https://flag/base', store: 'memory' });
  });

  it('have faults under their own names', () => {
    expect(faultsOf({}, { port: '70000', upstream: 'x', store: 'redis://x,y' })).toEqual([
      '--port: must be at most 65535',
      '--upstream: must be a URL with http:// or https://',
      '--store: must be memory, redis://[user:password@]host:port/db, rediss://… or redis-cluster://host:port,host:port',
    ]);
    expect(faultsOf({}, { port: '8e3' })).toEqual(['--port: must be of type number, is string']);
    expect(faultsOf({ listen: { port: -1 } }, { host: 'h' })).toEqual(['listen.port: must be at least 0']);
  });
});

describe('names such as __proto__', () => {
  it('are names like any other, or faults in their place', () => {
    const file = `{
      "routes": [{ "route": "GET /x", "account": "query.a" }],
      "accounts": [{ "id": "__proto__", "application": "constructor", "provider": "toString" }],
      "limits": { "accounts": { "__proto__": { "allMethods": ["1/1s"] } }, "providers": { "__proto__": {}, "toString": {} } }
    }`;
    const { limits } = parseConfig(file, 'test');
    expect(Object.entries(limits.accounts)).toEqual([['__proto__', { allMethods: ['1/1s'] }]]);
    expect(Object.keys(limits.providers)).toEqual(['__proto__', 'toString']);
    expect(faultsOf('{ "__proto__": 1, "limits": { "accounts": { "__proto__": 5 } } }')).toEqual([
      'limits.accounts.__proto__: must be of type object, is number',
      '__proto__: is no option that headgate knows',
      'limits.accounts.__proto__: the file has no such account',
    ]);
  });
});

describe('limits.recommended', () => {
  const routes = [{ route: 'POST /api/v1/emails', account: 'query.a' }];
  const own = { google: { allMethods: ['1/1h'] }, other: { allMethods: ['2/1h'] } };

  it('is off by default', () => {
    expect(Object.keys(limitsOf(checkConfig({ routes, limits: { providers: own } }, 'test')).providers ?? {})).toEqual([
      'google',
      'other',
    ]);
  });

  it('is what each provider starts from; the file wins by limit name', () => {
    const { providers } = limitsOf(checkConfig({ routes, limits: { recommended: true, providers: own } }, 'test'));
    expect(providers?.google).toEqual({
      allMethods: ['1/1h'],
      routes: { 'POST /api/v1/emails': ['20/1m', '400/1d'] },
    });
    expect(providers?.other).toEqual({ allMethods: ['2/1h'], routes: {} });
    expect(providers?.linkedin?.allMethods).toEqual(['20/1m', '800/1d']);
  });

  it('leaves out routes that the file does not have', () => {
    const { providers } = limitsOf(checkConfig({ limits: { recommended: true } }, 'test'));
    expect(providers?.google).toEqual({ allMethods: ['120/1m', '20000/1d'], routes: {} });
  });
});

it('docs/config.schema.json is up to date (npm run schema)', () => {
  expect(readFileSync(new URL('../../../docs/config.schema.json', import.meta.url), 'utf8')).toBe(jsonSchema());
});
