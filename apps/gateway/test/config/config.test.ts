import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { createIdempotency } from 'headgate';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';
import { createCertificate } from 'headgate-testbed/certificate';
import { describe, expect, it } from 'vitest';
import { checkConfig, type Overrides, parseConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { limiterOf, limitsOf } from '../../src/config/limits.ts';
import { routesOf } from '../../src/config/routes.ts';
import { jsonSchema } from '../../src/config/schema.ts';
import { parseStore } from '../../src/config/store-url.ts';
import { warningsFor } from '../../src/config/warnings.ts';

const DEFAULT_SETTINGS = createIdempotency({ store: createMemoryClaimStore() }).settings;
const SETTING_NAMES = Object.keys(DEFAULT_SETTINGS);

const HASH = 'a'.repeat(64);
/** What an `admin` without tokens has by default. */
const ADMIN = { tokens: [], hosts: [], console: true, insecure: false };
const ADMIN_TOKEN = 'an-admin-token-for-tests';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const SUBJECT = { account: 'acc_1', route: 'GET /x' };

const WORKERS_IN_MEMORY =
  'workers: several workers need Redis or PostgreSQL as store: in memory each of them would admit the whole of every limit';

/** Every issue as `path: reason`. */
function issuesOf(config: unknown, overrides: Overrides = {}): string[] {
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
  it('are filled in', () => {
    expect(checkConfig({}, 'test')).toEqual({
      listen: { host: '127.0.0.1', port: 8080 },
      store: 'memory',
      upstream: 'http://127.0.0.1:9000',
      upstreams: {},
      providers: {},
      forwardFields: [],
      upstreamTimeoutMs: 30_000,
      upstreamAnswerMs: 300_000,
      upstreamIdleMs: 4_000,
      maxUpstreamConnections: 256,
      clientTimeoutMs: 30_000,
      maxBodyBytes: 26_214_400,
      maxBufferedBytes: 1_073_741_824,
      maxConnections: 10_000,
      shutdownDelayMs: 0,
      workers: 1,
      drainMs: 10_000,
      log: { level: 'info', application: false, account: false },
      headers: 'x-ratelimit',
      storeDeadlineMs: 250,
      onStoreFailure: 'local',
      leases: false,
      idempotency: {
        leaseMs: 30_000,
        maxRunMs: 3_600_000,
        waitMs: 10_000,
        compares: [],
        retentionMs: 86_400_000,
        releasedRetentionMs: 600_000,
        maxKeptBytes: 1_048_576,
        lateAnswerMs: 120_000,
        onOrphan: 'reject',
        onStoreFailure: 'refuse',
      },
      perApplication: {
        maxRequests: 1_000,
        maxBufferedBytes: 268_435_456,
        maxLargeBytes: 8_388_608,
        maxRefusedWorkMs: 2_000,
      },
      keys: [],
      clientAddress: { trustedProxies: 0, header: 'x-forwarded-for', ipv6Prefix: 56 },
      accounts: [],
      routes: [],
      strictSiblings: false,
      limits: { recommended: false, default: {}, plans: {}, providers: {}, accounts: {}, groups: {}, lanes: {} },
      adjustments: { refreshMs: 500, max: 10_000 },
    });
  });

  it('are filled in for an empty admin, and for keys and accounts', () => {
    const config = checkConfig(
      { admin: {}, keys: [{ sha256: HASH, application: 'a' }], accounts: [{ id: 'x', application: 'a' }] },
      'test',
    );
    expect(config.admin).toEqual({ ...ADMIN, host: '127.0.0.1', port: 8081 });
    expect(config.keys[0]).toEqual({
      sha256: HASH,
      name: 'aaaaaaaaaaaa',
      application: 'a',
      role: 'account',
      scope: null,
    });
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
    ['{"upstream": "http://a",\n "upstream": "http://b"}', 'line 2, column 2: "upstream" appears twice in one object'],
    ['{"a": "\u0001"}', 'line 1, column 7: a JSON value expected'],
    [`${'['.repeat(100)}`, 'line 1, column 66: nested deeper than 64 levels'],
  ])('%j: the error has line and column', (text, issue) => {
    const [first] = issuesOf(text);
    expect(first?.replace('a string expected', 'a JSON value expected')).toBe(`: ${issue}`);
  });

  it('may begin with a byte order mark', () => {
    expect(issuesOf('\uFEFF{}')).toEqual([]);
  });
});

describe('errors', () => {
  it.each<[unknown, string[]]>([
    [[], [': must be an object, got an array']],
    ['"text"', [': must be an object, got a string']],
    [{ clientTimeoutMs: 0 }, ['clientTimeoutMs: must be at least 1, got 0']],
    [{ maxConnections: 0 }, ['maxConnections: must be at least 1, got 0']],
    [{ maxBufferedBytes: -1 }, ['maxBufferedBytes: must be at least 0, got -1']],
    [
      { log: { level: 'fatal' } },
      ['log.level: must be one of "debug", "info", "warn", "error", "silent", got "fatal"'],
    ],
    [{ log: { accounts: true } }, ['log.accounts: unknown option, did you mean "account"?']],
    [{ perApplication: { maxRequests: 0 } }, ['perApplication.maxRequests: must be at least 1, got 0']],
    [{ perApplication: { maxBufferedBytes: 'all' } }, ['perApplication.maxBufferedBytes: must be a number, got "all"']],
    [{ maxbodybytes: 1 }, ['maxbodybytes: unknown option, did you mean "maxBodyBytes"?']],
    [{ maxBody: 1 }, ['maxBody: unknown option, did you mean "maxBodyBytes"?']],
    [
      { keys: ['text', { sha256: 5, application: 'a' }] },
      [
        'keys[0]: must be an object, got a string',
        'keys[1].sha256: must be a string, or { "env": "NAME" } or { "file": "PATH" }, got a number',
      ],
    ],
    [
      { listen: { port: 65_536, hst: 'x' } },
      ['listen.port: must be at most 65535, got 65536', 'listen.hst: unknown option, did you mean "host"?'],
    ],
    [{ listen: { address: 'x' } }, ['listen.address: unknown option (expected host, port or tls)']],
    [{ listen: { host: '' } }, ['listen.host: must not be empty']],
    [{ admin: { port: 1.5 } }, ['admin.port: must be a whole number, got 1.5']],
    [{ admin: { port: null } }, ['admin.port: must be a number, got null']],
    [{ admin: { port: 8080 } }, ['admin.port: 8080 is also the port of listen']],
    [{ admin: {}, decisions: { port: 8081 } }, ['decisions.port: 8081 is also the port of admin']],
    [{ decisions: { port: 0, secret: 'too-short-to-print' } }, ['decisions.secret: must have at least 32 characters']],
    [{ decisions: { tokens: [] } }, ['decisions.tokens: unknown option (expected host, port, tls or secret)']],
    [{ rateLimitService: { domains: { api: [] } } }, ['rateLimitService.domains.api: must not be empty, got an array']],
    [
      { rateLimitService: { domains: { api: [{ entries: [], route: 'GET /x' }] } } },
      [
        'rateLimitService.domains.api[0].entries: must not be empty, got an array',
        'rateLimitService.domains.api[0].account: is missing (expected a string)',
        'rateLimitService.domains.api[0].route: routes has no "GET /x"',
      ],
    ],
    [
      { admin: { tokens: [{ name: 'jane', token: 'too-short' }] } },
      ['admin.tokens[0].token: must be 16 to 1,024 printable ASCII characters without spaces'],
    ],
    [
      { admin: { tokens: [{ name: 'jane', token: ADMIN_TOKEN, role: 'root' }, { token: 'another-admin-token' }] } },
      [
        'admin.tokens[0].role: must be one of "viewer", "operator", "admin"',
        'admin.tokens[1].name: is missing (expected a string)',
      ],
    ],
    [
      {
        keys: [{ token: ADMIN_TOKEN, application: 'a' }],
        admin: {
          tokens: [
            { name: 'jane', token: ADMIN_TOKEN },
            { name: 'joe', token: 'another-admin-token' },
            { name: 'jim', sha256: sha256('another-admin-token').toUpperCase() },
            { name: 'jill' },
          ],
        },
      },
      [
        'admin.tokens[0]: is the same token as keys[0]',
        'admin.tokens[2]: is the same token as admin.tokens[1]',
        'admin.tokens[3]: needs exactly one of sha256 and token',
      ],
    ],
    [
      { store: 'redis://h', workers: 'auto', admin: { host: '::', tokens: [{ name: 'jane', token: ADMIN_TOKEN }] } },
      [
        'admin.tokens: would be sent to "::" without TLS: add admin.tls, listen on 127.0.0.1, or set "insecure": true behind a proxy with TLS',
      ],
    ],
    [
      { admin: { hosts: ['ops.example.com', '[::1]', 'ops.example.com/', 'ops:8081', ''] } },
      ['ops.example.com/', 'ops:8081', ''].map(
        (host, i) =>
          `admin.hosts[${i + 2}]: must be a host name such as "ops.example.com", without scheme and port, got "${host}"`,
      ),
    ],
    [{ perApplication: { maxLargeBytes: -1 } }, ['perApplication.maxLargeBytes: must be at least 0, got -1']],
    [{ headers: 'x' }, ['headers: must be a list of "x-ratelimit", "ietf", or one of them, got "x"']],
    [{ headers: ['ietf', 'none'] }, ['headers: must be a list of "x-ratelimit", "ietf", or one of them, got "none"']],
    [
      { forwardFields: ['X-Real-IP', 'a b', 'X-Api-Key', 'x_api_key', 'Transfer-Encoding', 'X-Forwarded-For', 5] },
      [
        'forwardFields[6]: must be a string, got 5',
        'forwardFields[1]: "a b" is not a header name',
        'forwardFields[2]: the gateway itself sets or removes X-Api-Key',
        'forwardFields[3]: the gateway itself sets or removes x_api_key',
        'forwardFields[4]: the gateway itself sets or removes Transfer-Encoding',
        'forwardFields[5]: the gateway itself sets or removes X-Forwarded-For',
      ],
    ],
    [{ strictSiblings: 'yes' }, ['strictSiblings: must be true or false, got "yes"']],
    [{ workers: 'all', store: 'redis://r' }, ['workers: must be a number from 1 to 1024, or "auto", got "all"']],
    [{ workers: 0, store: 'redis://r' }, ['workers: must be at least 1, got 0']],
    [{ workers: 2 }, [WORKERS_IN_MEMORY]],
    [{ workers: 'auto' }, [WORKERS_IN_MEMORY]],
    [{ upstream: 'ftp://x' }, ['upstream: must be a URL with http:// or https://, got "ftp://…"']],
    [{ upstream: 'http://x/?a=1' }, ['upstream: must have neither a query nor a fragment']],
    [{ upstream: 'http://u:p@x' }, ['upstream: must not have a user name or password in it']],
    [
      { upstreamTimeoutMs: 0, drainMs: -1 },
      ['upstreamTimeoutMs: must be at least 1, got 0', 'drainMs: must be at least 0, got -1'],
    ],
    [{ perApplication: { maxRefusedWorkMs: 0 } }, ['perApplication.maxRefusedWorkMs: must be at least 1, got 0']],
    [{ perApplication: { maxClaims: 0 } }, ['perApplication.maxClaims: must be at least 1, got 0']],
    [
      {
        upstreamAnswerMs: 0,
        upstreamIdleMs: -1,
        maxUpstreamConnections: 0,
        perApplication: { maxUpstreamConnections: 0 },
      },
      [
        'upstreamAnswerMs: must be at least 1, got 0',
        'upstreamIdleMs: must be at least 0, got -1',
        'maxUpstreamConnections: must be at least 1, got 0',
        'perApplication.maxUpstreamConnections: must be at least 1, got 0',
      ],
    ],
    [
      { idempotency: { onOrphan: 'retry' } },
      [`idempotency.onOrphan: must be one of "reject", "reexecute", "reconcile", got "retry"`],
    ],
  ])('%j', (config, issues) => {
    expect(issuesOf(config)).toEqual(issues);
  });

  it.each<[object, string]>([
    [{ application: 'a' }, 'keys[0]: needs exactly one of sha256 and token'],
    [{ application: 'a', sha256: HASH, token: 't' }, 'keys[0]: needs exactly one of sha256 and token'],
    [{ application: 'a', sha256: 'zz' }, 'keys[0].sha256: must be the 64 hexadecimal digits of the SHA-256 of a token'],
    [{ token: 't' }, 'keys[0].application: is missing (expected a string)'],
    [{ application: 'a', token: 't', role: 'scoped' }, 'keys[0].scope: a scoped key needs a scope'],
    [{ application: 'a', token: 't', scope: 's' }, 'keys[0].scope: only a key with the role "scoped" has a scope'],
    [{ application: 'a', token: 't', role: 'king' }, 'keys[0].role: must be one of "service", "account", "scoped"'],
    [{ application: 'a', token: 't', scpe: 's' }, 'keys[0].scpe: unknown option, did you mean "scope"?'],
    [
      { application: 'a', token: 't', expiresAt: '2027-02-30T00:00:00Z' },
      'keys[0].expiresAt: must be a time in ISO 8601 with its offset, such as "2027-01-01T00:00:00Z"',
    ],
  ])('a key %j', (key, issue) => {
    expect(issuesOf({ keys: [key] })).toEqual([issue]);
  });

  it('never show a value that may be a secret', () => {
    const secret = 'secret with spaces';
    for (const config of [
      { keys: [{ application: 'a', token: secret }], store: 'redis:/u:secret@h' },
      { keys: [{ application: 'a', token: ['secret'] }] },
      { keys: [{ application: 'a', sha256: secret }] },
      { keys: [secret] },
      { keys: secret },
      { idempotency: secret },
      { idempotency: { secret: ['secret'] } },
      { upstream: 'user:secret@host' },
      { upstream: 'http://host/?secret' },
      { store: 'secret' },
      { admin: 'http://u:secret@host' },
      { admin: { tokens: ['secret'] } },
      { admin: { tokens: 'secret' } },
      { admin: { tokens: [{ name: 'jane', token: 'a secret of many words' }] } },
      { admin: { tokens: [{ name: 'jane', sha256: ['secret'] }] } },
      { limits: { providers: 'secret' } },
      JSON.stringify(secret),
    ]) {
      const issues = issuesOf(config);
      expect(issues).not.toEqual([]);
      expect(issues.join().replace('idempotency.secret', '')).not.toContain('secret');
    }
  });

  it('cut long values', () => {
    const [issue] = issuesOf({ routes: [{ route: 'GET /x', account: 'x'.repeat(1_000) }] });
    expect(issue).toMatch(/, got "x{80}…"$/);
  });

  it('suggest the nearest route, account or provider', () => {
    const config = {
      accounts: [{ id: 'acc_1', application: 'a' }],
      routes: [{ route: 'POST /api/v1/emails', account: 'query.a' }],
      limits: { default: { routes: { 'POST /api/v1/email': ['1/1m'] } }, accounts: { acc1: {} } },
    };
    expect(issuesOf(config)).toEqual([
      'limits.accounts.acc1: the file has no such account, did you mean "acc_1"?',
      'limits.default.routes["POST /api/v1/email"]: the file has no such route, did you mean "POST /api/v1/emails"?',
    ]);
  });

  it('a plan of an account that limits.plans does not have: each of its requests would get a 500', () => {
    const accounts = ['pro', 'prro', 'gold', ''].map((plan, i) => ({ id: `acc_${i}`, application: 'a', plan }));
    expect(issuesOf({ accounts, limits: { default: {}, plans: { pro: {}, free: { allMethods: ['1'] } } } })).toEqual([
      'accounts[3].plan: must not be empty',
      'limits.plans.free.allMethods[0]: a window is max/duration, such as "60/1m", got "1"',
      'accounts[1].plan: limits.plans has no "prro", did you mean "pro"?',
      'accounts[2].plan: limits.plans has no "gold"',
    ]);
    expect(issuesOf({ accounts: [{ id: 'a', application: 'a', plan: 'pro' }] })).toEqual([
      'accounts[0].plan: limits.plans has no "pro"',
    ]);
    const limits = { default: {}, plans: { pro: { routes: { 'POST /q': ['1/1s', '2/1s'] } } } };
    expect(issuesOf({ limits })).toEqual([
      'limits.plans.pro.routes["POST /q"]: the file has no such route',
      'limits.plans.pro.routes["POST /q"]: two windows of one limit need distinct durations, got "1s"',
    ]);
  });

  it('plans without default limits: an account without a plan would not be limited', () => {
    const accounts = [{ id: 'a', application: 'a' }];
    const plans = { pro: { allMethods: ['1/1m'] } };
    expect(issuesOf({ accounts, limits: { plans } })).toEqual([
      'limits.default: must be given with plans: it has the limits of accounts without a plan',
    ]);
    expect(issuesOf({ accounts, limits: { plans, default: {} } })).toEqual([]);
  });

  it('two equal keys, accounts or routes', () => {
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
    expect(issuesOf(config)).toEqual([
      'keys[1]: is the same key as keys[0]',
      'accounts[1].id: "x" is also the id of accounts[0]',
      'routes[1].route: matches the same requests as routes[0]',
    ]);
  });

  it('a token and its hash are the same key', () => {
    const sha256 = createHash('sha256').update('t').digest('hex').toUpperCase();
    const keys = [
      { token: 't', application: 'a' },
      { sha256, application: 'b' },
    ];
    expect(issuesOf({ keys })).toEqual(['keys[1]: is the same key as keys[0]']);
  });

  it.each<[object, string]>([
    [{ route: 'get /x' }, 'routes[0].route: must be a method and a path, such as "POST /api/v1/emails", got "get /x"'],
    [{ route: 'GET x' }, 'routes[0].route: must be a method and a path, such as "POST /api/v1/emails", got "GET x"'],
    [{ route: 'BREW /x' }, 'routes[0].route: BREW is not a method for a route'],
    [{ route: 'GET /x*' }, 'routes[0].route: a wildcard is the whole last segment, as in "GET /files/*"'],
    [{ route: 'GET /x/**' }, 'routes[0].route: a wildcard is the whole last segment, as in "GET /files/*"'],
    [{ route: 'GET /x/*/y' }, 'routes[0].route: a wildcard is the whole last segment, as in "GET /files/*"'],
    [{ route: 'GET /x/*/' }, 'routes[0].route: a wildcard is the whole last segment, as in "GET /files/*"'],
    [{ route: 'GET /x/*', account: 'path.*' }, 'routes[0].account: the route has no parameter {*}'],
    [{ route: 'GET /x//y' }, 'routes[0].route: has an empty segment (two slashes)'],
    [{ route: 'GET /x/../y' }, 'routes[0].route: a dot segment never matches: such requests are refused'],
    [{ route: 'GET /x/a{b}' }, 'routes[0].route: "a{b}": a parameter is a whole segment, such as {chat_id}'],
    [{ route: 'GET /x?y' }, 'routes[0].route: "x?y" has a character that a path cannot have unencoded'],
    [{ route: 'GET /{a}/{a}' }, 'routes[0].route: has the parameter {a} twice'],
    [{ route: 'GET /healthz' }, 'routes[0].route: the gateway itself answers /healthz'],
    [{ route: 'GET /readyz' }, 'routes[0].route: the gateway itself answers /readyz'],
    [{ route: 'HEAD /livez' }, 'routes[0].route: the gateway itself answers /livez'],
    [
      { route: 'GET /x', account: 'cookie.x' },
      'routes[0].account: must be key, application, address or none, or path.NAME, query.NAME, header.NAME or body.NAME, got "cookie.x"',
    ],
    [{ route: 'GET /{a}', account: 'path.b' }, 'routes[0].account: the route has no parameter {b}'],
    [{ route: 'GET /x', account: 'header.a b' }, 'routes[0].account: "a b" is not a header name'],
    [
      { route: 'GET /x', account: 'header.X-Api-Key' },
      'routes[0].account: the header X-Api-Key cannot name an account',
    ],
    [{ route: 'GET /x', idempotent: 1 }, 'routes[0].idempotent: must be true, false or an object, got 1'],
    [
      { route: 'GET /x', idempotent: { lease: 1 } },
      'routes[0].idempotent.lease: unknown option, did you mean "leaseMs"?',
    ],
  ])('a route %j', (route, issue) => {
    expect(issuesOf({ routes: [route], limits: { unlimited: true } })).toEqual([issue]);
  });

  it.each([
    [{ upstreams: { a: 'ftp://x' } }, 'upstreams.a: must be a URL with http:// or https://, got "ftp://…"'],
    [{ upstreams: { 'a b': 'http://u:p@x' } }, 'upstreams["a b"]: must not have a user name or password in it'],
    [
      { upstreams: { a: ['http://u:secret@x'] } },
      'upstreams.a: must be a string, or an object such as { "url": "http://127.0.0.1:9000", "cooldown": true }, got an array',
    ],
    [{ upstream: { url: 'http://u:p@x' } }, 'upstream.url: must not have a user name or password in it'],
    [{ upstream: {} }, 'upstream.url: is missing (expected a string)'],
    [
      { upstream: { url: 'http://x', cooldown: 'yes' } },
      'upstream.cooldown: must be true, false or an object such as { "scope": "account" }, got a string',
    ],
    [{ upstream: { url: 'http://x', cooldown: { maxMs: 0 } } }, 'upstream.cooldown.maxMs: must be at least 1'],
    [
      { upstreams: { a: { url: 'http://x', cooldown: { statuses: [200] } } } },
      'upstreams.a.cooldown.statuses[0]: must be at least 400',
    ],
    [
      { upstream: { url: 'http://x', providerAnswers: 'keep' } },
      'upstream.providerAnswers: must be one of "replace", "pass"',
    ],
    [{ upstreams: 'http://u:secret@x' }, 'upstreams: must be an object, got a string'],
    [
      { upstreams: { default: 'http://x' } },
      "upstreams.default: default is the name of the config's upstream: choose another one",
    ],
    [
      { upstreams: { social: 'http://x' }, routes: [{ route: 'GET /x', upstream: 'socal' }] },
      'routes[0].upstream: upstreams has no "socal", did you mean "social"?',
    ],
    [{ routes: [{ route: 'GET /x', upstream: '' }] }, 'routes[0].upstream: must not be empty'],
    [
      { upstreams: { social: 'http://x' }, providers: { 'p q': { upstream: 'Socials' } } },
      'providers["p q"].upstream: upstreams has no "Socials", did you mean "social"?',
    ],
    [{ providers: { p: {} } }, 'providers.p.upstream: is missing (expected a string)'],
    [{ cors: {} }, 'cors.origins: is missing (expected an array)'],
    [{ cors: { origins: [] } }, 'cors.origins: must not be empty: without cors, no origin is allowed'],
    [
      { cors: { origins: ['https://a.com/'] } },
      'cors.origins[0]: must be an origin such as "https://app.example.com", or "*", got "https://…"',
    ],
    [
      { cors: { origins: ['*', 'https://A.com:443'] } },
      'cors.origins[1]: browsers write it as "https://a.com", got "https://A.com:443"',
    ],
    [
      { cors: { origins: ['app.example.com'] } },
      'cors.origins[0]: must be an origin such as "https://app.example.com", or "*", got "app.example.com"',
    ],
    [
      { cors: { origins: ['https://*.example.com'] } },
      'cors.origins[0]: must be an origin such as "https://app.example.com", or "*", got "https://…"',
    ],
    [
      { cors: { origins: ['null'] } },
      'cors.origins[0]: must be an origin such as "https://app.example.com", or "*", got "null"',
    ],
    [
      { cors: { origins: ['*'], credentials: true } },
      'cors.origins[0]: with credentials, browsers do not accept "*": list the values',
    ],
    [
      { cors: { origins: ['https://a.com'], headers: ['x', '*'], credentials: true } },
      'cors.headers[1]: with credentials, browsers do not accept "*": list the values',
    ],
    [{ cors: { origins: ['*'], exposedHeaders: ['a b'] } }, 'cors.exposedHeaders[0]: "a b" is not a header name'],
    [{ cors: { origins: ['*'], maxAgeS: 86_401 } }, 'cors.maxAgeS: must be at most 86400, got 86401'],
    [{ cors: { origin: '*', origins: ['*'] } }, 'cors.origin: unknown option, did you mean "origins"?'],
  ])('upstreams and CORS: %j', (config, issue) => {
    expect(issuesOf(config)).toEqual([issue]);
  });

  it('an origin of an app is not a URL of the web', () => {
    const origins = ['capacitor://localhost', 'chrome-extension://abc', 'http://localhost:3000', 'http://[::1]:80801'];
    expect(issuesOf({ cors: { origins } })).toEqual([expect.stringContaining('cors.origins[3]: must be an origin')]);
  });

  it('S3: limits: each window has its own place', () => {
    const routes = { 'POST /x': ['1/1s', '2/x', { max: -1, durationMs: 5 }, { max: 1, durationMs: 5, z: 1 }, 7] };
    const limits = { default: { routes, allMethods: ['1/1s', '2/1000ms'] }, providers: { p: { allMethods: '5/1s' } } };
    expect(issuesOf({ routes: [{ route: 'POST /x' }], limits })).toEqual([
      'limits.default.routes["POST /x"][1]: a duration is a whole number and a unit of ms, s, m, h, d, such as "30s", got "x"',
      'limits.default.routes["POST /x"][2].max: must be at least 0, got -1',
      'limits.default.routes["POST /x"][3].z: unknown option (expected max, durationMs, unit or name)',
      'limits.default.routes["POST /x"][4]: must be "60/1m" or { "max": 60, "durationMs": 60000 }, got 7',
      'limits.providers.p.allMethods: must be an array of windows, or { "windows": […], "scope": "account", "inFlight": 10 }, got "5/1s"',
      'limits.default.allMethods: two windows of one limit need distinct durations, got "1s"',
    ]);
  });

  it('limits: windows with a name', () => {
    const named = (name: unknown) => ({ default: { allMethods: [{ max: 60, durationMs: 60_000, name }, '5000/1d'] } });
    expect(issuesOf({ limits: named('per-minute') })).toEqual([]);
    expect(issuesOf({ limits: named('per minute') })).toEqual([
      'limits.default.allMethods[0].name: a name has up to 64 letters, digits, ".", "_" and "-", got "per minute"',
    ]);
    expect(issuesOf({ limits: named('route-1m') })).toEqual([expect.stringContaining('are reserved')]);
  });

  it('S1: limits for all methods with a scope', () => {
    const limits = {
      default: { allMethods: { windows: ['1/1s', '2/1000ms'], scope: 'account' } },
      providers: { p: { allMethods: { windows: ['x'], scope: 'world', max: 1 } }, q: { allMethods: {} } },
    };
    expect(issuesOf({ limits })).toEqual([
      'limits.providers.p.allMethods.windows[0]: a window is max/duration, such as "60/1m", got "x"',
      'limits.providers.p.allMethods.scope: must be one of "route", "account", got "world"',
      'limits.providers.p.allMethods.max: unknown option (expected windows, inFlight or scope)',
      'limits.providers.q.allMethods: must have windows or inFlight',
      'limits.default.allMethods.windows: two windows of one limit need distinct durations, got "1s"',
    ]);
  });

  it('S29: limits of requests in flight', () => {
    const routes = { 'POST /x': { inFlight: 0 }, 'POST /y': { inFlight: 'x', windows: ['1/1s', '2/1000ms'] } };
    const limits = {
      default: { allMethods: { inFlight: 1.5 }, routes },
      providers: { p: { allMethods: { inFlight: false } } },
    };
    expect(issuesOf({ routes: [{ route: 'POST /x' }, { route: 'POST /y' }], limits })).toEqual([
      'limits.default.allMethods.inFlight: must be an integer from 1 to 1000000, or false, got 1.5',
      'limits.default.routes["POST /x"].inFlight: must be at least 1, got 0',
      'limits.default.routes["POST /y"].inFlight: must be an integer from 1 to 1000000, or false, got "x"',
      'limits.default.routes["POST /y"].windows: two windows of one limit need distinct durations, got "1s"',
    ]);
    const good = {
      default: { allMethods: { inFlight: 5 }, routes: { 'POST /x': { windows: ['1/1m'], inFlight: false } } },
    };
    const counted = [{ route: 'POST /x', account: 'header.x-account' }];
    expect(issuesOf({ routes: counted, limits: good })).toEqual([]);
    expect(issuesOf({ routes: counted, limits: good, shadow: { limits: good, store: 'memory' } })).toEqual([
      'shadow.limits.default.allMethods.inFlight: must be left out: a candidate cannot bound requests in flight',
      'shadow.limits.default.routes["POST /x"].inFlight: must be left out: a candidate cannot bound requests in flight',
    ]);
  });

  it('a limit for a route or an account that the file does not have', () => {
    const layer = { routes: { 'POST /q': ['1/1m'] } };
    expect(issuesOf({ limits: { providers: { p: layer }, accounts: { 'acc 1': layer } } })).toEqual([
      'limits.accounts["acc 1"]: the file has no such account',
      'limits.providers.p.routes["POST /q"]: the file has no such route',
      'limits.accounts["acc 1"].routes["POST /q"]: the file has no such route',
    ]);
  });

  it('an account may be in the body, and a route may be idempotent and have its own settings', () => {
    const routes = [
      { route: 'POST /a', account: 'body.id', idempotent: true },
      { route: 'POST /b', idempotent: { onOrphan: 'reexecute', waitMs: 0 } },
      { route: 'POST /c', idempotent: false },
    ];
    expect(issuesOf({ routes, limits: { unlimited: true } })).toEqual([]);
    expect(issuesOf({ routes: [{ route: 'POST /a', idempotent: { wat: 1 } }] })).toEqual([
      expect.stringContaining('routes[0].idempotent.wat'),
    ]);
  });
});

it('a token is not in the checked config: its hash is', () => {
  const config = checkConfig({ keys: [{ token: 'hush-hush', application: 'a' }] }, 'test');
  const sha256 = createHash('sha256').update('hush-hush').digest('hex');
  expect(config.keys).toEqual([{ sha256, name: sha256.slice(0, 12), application: 'a', role: 'account', scope: null }]);
  expect(inspect(config, { depth: null, showHidden: true })).not.toContain('hush');
});

describe('warnings', () => {
  const warningsOf = (config: object, path: RegExp) =>
    warningsFor(checkConfig(config, 'test')).filter((warning) => path.test(warning.path));
  const routes = (...names: string[]) => ({ routes: names.map((route) => ({ route })) });

  it('the section idempotency without an idempotent route is a warning, also with the defaults', () => {
    const routes = [{ route: 'POST /x' }];
    const unused = {
      path: 'idempotency',
      reason: expect.stringMatching(/^no route is idempotent, .* "idempotent": true/),
    };
    for (const idempotency of [{}, { retentionMs: 86_400_000 }])
      expect(warningsOf({ routes, idempotency }, /^idempotency/)).toEqual([unused]);
    const idempotency = { waitMs: 0 };
    const secret = 'a-secret-of-at-least-32-characters';
    expect(warningsOf({ routes }, /^idempotency/)).toEqual([]);
    expect(warningsOf({ routes: [{ route: 'POST /x', idempotent: true }], idempotency }, /^idempotency/)).toEqual([]);
    expect(warningsOf({ routes, idempotency, decisions: { secret } }, /^idempotency/)).toEqual([]);
  });

  it('a window that is probably in seconds is a warning, unless a text names its unit', () => {
    const limit = (durationMs: number) => [{ max: 5, durationMs }];
    const of = (windows: object) => ({
      routes: [{ route: 'GET /x' }],
      keys: [{ sha256: 'a'.repeat(64), application: 'a' }],
      perAddress: windows,
      limits: { default: { allMethods: windows } },
    });
    const reason = 'a window of 900 ms: are seconds meant? Multiply by 1000';
    expect(warningsOf(of(limit(900)), /^(limits|perAddress)$/)).toEqual([
      { path: 'limits', reason },
      { path: 'perAddress', reason },
    ]);
    for (const windows of [limit(60_000), ['5/900s'], ['5/900ms']])
      expect(warningsOf(of(windows), /^(limits|perAddress)$/)).toEqual([]);
  });

  it('a retention that is probably in seconds is a warning', () => {
    const routes = [
      { route: 'POST /x', idempotent: { retentionMs: 3_600 } },
      { route: 'POST /y', idempotent: true },
    ];
    expect(warningsOf({ routes, idempotency: { retentionMs: 86_400 } }, /retentionMs$/)).toEqual([
      { path: 'idempotency.retentionMs', reason: '86400 ms: are seconds meant? Multiply by 1000' },
      { path: 'routes[0].idempotent.retentionMs', reason: '3600 ms: are seconds meant? Multiply by 1000' },
    ]);
    expect(warningsOf({ routes: [], idempotency: { retentionMs: 604_800_000 } }, /retentionMs$/)).toEqual([]);
  });

  it.each([
    [['GET /api/special', 'GET /api/{x}'], 1, 0],
    [['GET /api/{x}', 'GET /api/special'], 0, 1],
    [['GET /api/{x}', 'GET /api/Special/'], 0, 1],
    [['GET /{x}/b', 'GET /a/{y}'], 0, 1],
    [['GET /{x}/{y}/c', 'GET /z', 'GET /q/b/c'], 0, 2],
    [['GET /api/*', 'GET /api/special'], 0, 1],
    [['GET /api', 'GET /api/*'], 1, 0],
    [['GET /api/{x}', 'GET /api/*'], 1, 0],
    [['GET /api/*', 'GET /api/a/*'], 0, 1],
    [['GET /{x}/b', 'GET /api/*'], 0, 1],
    [['GET /*', 'GET /api/{x}/more'], 0, 1],
  ])('of %j, one has a parameter beside a literal', (names, index, sibling) => {
    expect(warningsOf(routes(...names), /^routes/)).toEqual([
      {
        path: `routes[${index}].route`,
        reason: expect.stringContaining(`which many servers read as routes[${sibling}]`),
      },
    ]);
    expect(warningsOf({ ...routes(...names), strictSiblings: true }, /^routes/)).toEqual([]);
  });

  it.each([
    [['GET /api/special', 'POST /api/{x}']],
    [['GET /api/special', 'GET /api/{x}/more']],
    [['GET /api/special', 'GET /other/{x}']],
    [['GET /a/{x}/c', 'GET /a/b/d']],
    [['GET /a', 'GET /b/{x}', 'GET /b/{x}/c']],
    [['GET /a/*', 'POST /a/b', 'GET /b', 'GET /b/{x}']],
    [['GET /a/*', 'GET /b/*']],
    [['GET /{x}', 'GET /a/b/*']],
  ])('of %j, none has', (names) => {
    expect(warningsOf(routes(...names), /^routes/)).toEqual([]);
  });

  it('every pair of routes has its warning, the sharper ones first, in a bounded number of lines', () => {
    const login = { route: 'POST /login' };
    const pay = { route: 'POST /pay/', idempotent: { required: true } };
    const all = { route: 'POST /*' };
    const strict = 'set strictSiblings to refuse them';
    expect(warningsOf({ routes: [login, pay, all] }, /^routes/)).toEqual([
      {
        path: 'routes[2].route',
        reason: `also matches spellings such as PAY or pay;a=1, or without the slash at the end, which many servers read as routes[1]: a retry with such a path runs a second time: ${strict}`,
      },
      {
        path: 'routes[2].route',
        reason: `also matches spellings such as LOGIN or login;a=1, which many servers read as routes[0]: ${strict}`,
      },
    ]);
    // The wildcard compares the path with the path that came first.
    const both = warningsOf({ routes: [pay, { ...all, idempotent: true }] }, /^routes/);
    expect(both).toEqual([{ path: 'routes[1].route', reason: expect.not.stringContaining('second time') }]);
    const many = Array.from({ length: 40 }, (_, i) => `POST /r${i}`);
    const lines = warningsOf(routes(...many, 'POST /*'), /^routes/);
    expect([lines.length, lines.at(-1)?.reason]).toEqual([
      11,
      '30 more pairs of routes in which one also matches spellings of the other',
    ]);
  });

  it('keys that no route needs, and keys that expired', () => {
    const keys = ['2020-01-01T00:00:00Z', '2999-01-01T00:00:00Z', undefined].map((expiresAt, i) => ({
      token: `token_${i}`,
      application: 'a',
      expiresAt,
    }));
    const open = { route: 'GET /x', public: true };
    expect(warningsOf({ keys, routes: [open] }, /^keys/)).toEqual([
      { path: 'keys', reason: expect.stringContaining('every route is public') },
      { path: 'keys[0].expiresAt', reason: 'the key expired, so requests with it are refused' },
    ]);
    expect(warningsOf({ keys, routes: [open], decisions: {} }, /^keys$/)).toEqual([]);
    expect(warningsOf({ keys, routes: [open, { route: 'GET /y' }] }, /^keys$/)).toEqual([]);
    expect(warningsOf({ routes: [open] }, /^keys/)).toEqual([]);
  });

  it.each([
    ['127.0.0.1', 'http://localhost:8080/v1', true],
    ['0.0.0.0', 'http://[::1]:8080', true],
    ['10.0.0.5', 'http://10.0.0.5:8080', true],
    ['127.0.0.1', 'http://127.0.0.1:8081', false],
    ['127.0.0.1', 'http://10.0.0.5:8080', false],
    ['10.0.0.5', 'http://127.0.0.1:8080', false],
  ])('listening on %s, the upstream %s is the gateway itself: %s', (host, url, isOwn) => {
    const found = warningsOf({ listen: { host }, upstream: url, upstreams: { b: url } }, /^upstream/);
    const paths = found.filter(({ reason }) => reason.startsWith('is the address of listen')).map(({ path }) => path);
    expect(paths).toEqual(isOwn ? ['upstream', 'upstreams.b'] : []);
  });

  it('upstreams that no route and no provider uses, and settings of a provider without accounts', () => {
    const config = {
      upstreams: { a: 'http://a', b: 'http://b', c: 'http://c' },
      providers: { outlok: { upstream: 'b' } },
      accounts: [{ id: 'x', application: 'a', provider: 'outlook' }],
      routes: [{ route: 'GET /x', upstream: 'a' }],
    };
    expect(warningsOf(config, /^(upstreams|providers)/)).toEqual([
      { path: 'upstreams.c', reason: 'no route and no provider uses this upstream' },
      { path: 'providers.outlok', reason: 'no account of the file has this provider, did you mean "outlook"?' },
    ]);
  });

  it.each(['0.0.0.0', '::', '10.0.0.1', '192.0.2.1', 'admin.example.test', '127.example.test'])(
    'admin on %s, which other machines can reach without a key',
    (host) => {
      expect(warningsOf({ admin: { host } }, /^admin/)).toEqual([
        { path: 'admin.host', reason: expect.stringContaining('/metrics needs no key') },
      ]);
    },
  );

  it('a route without an account beside routes with one is a warning, unless it says that it is not limited', () => {
    const configWith = (account?: string) => ({
      routes: [
        { route: 'GET /free', account },
        { route: 'GET /x', account: 'query.id' },
      ],
      limits: { default: { allMethods: ['1/1m'] } },
    });
    expect(warningsOf(configWith(), /^routes/)).toEqual([
      { path: 'routes[0]', reason: expect.stringContaining('write "account": "key"') },
    ]);
    expect(warningsOf(configWith('none'), /^routes/)).toEqual([]);
  });

  it('idempotent routes with the store memory are a warning', () => {
    const routes = [{ route: 'POST /x', idempotent: true }];
    expect(warningsOf({ routes }, /^store$/)).toEqual([
      { path: 'store', reason: expect.stringContaining('a restart forgets every idempotency key') },
    ]);
    expect(warningsOf({ routes, store: 'redis://localhost' }, /^store$/)).toEqual([]);
    expect(warningsOf({ routes: [{ route: 'POST /x', idempotent: false }] }, /^store$/)).toEqual([]);
  });

  it('leases with the store memory are a warning; true is a lease of a second', () => {
    expect(warningsOf({ leases: true }, /^leases$/)).toEqual([
      { path: 'leases', reason: expect.stringContaining('have no use with the store in memory') },
    ]);
    const config = { leases: { leaseMs: 500 }, store: 'redis://localhost' };
    expect(warningsOf(config, /^leases$/)).toEqual([]);
    expect(checkConfig({ leases: true }, 'test').leases).toEqual(checkConfig({ leases: {} }, 'test').leases);
    expect(() => checkConfig({ leases: { leaseMs: 5 } }, 'test')).toThrow('leases.leaseMs');
  });

  it('a key whose application has no account, although others have, is a warning', () => {
    const config = {
      keys: ['x', 'y'].map((application) => ({ token: `token_${application}`, application })),
      accounts: [{ id: 'a', application: 'x' }],
      routes: [{ route: 'GET /x', account: 'query.id' }],
      limits: { unlimited: true },
    };
    expect(warningsOf(config, /^keys/)).toEqual([
      { path: 'keys[1].application', reason: expect.stringContaining('no account belongs to this application') },
    ]);
    expect(warningsOf({ ...config, accounts: [] }, /^keys/)).toEqual([]);
  });

  it.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])('no warning for admin on %s', (host) => {
    expect(warningsOf({ admin: { host } }, /^admin/)).toEqual([]);
  });

  it('a listed field that is forwarded anyway', () => {
    expect(warningsOf({ forwardFields: ['X-Real-IP', 'X-RealIP', 'my_field'] }, /^forwardFields/)).toEqual([
      { path: 'forwardFields[1]', reason: 'X-RealIP is forwarded without being listed' },
    ]);
  });
});

describe('idempotency settings', () => {
  const places: [name: string, path: string, put: (settings: object) => object][] = [
    ['for every route', 'idempotency', (idempotency) => ({ idempotency })],
    ['of one route', 'routes[0].idempotent', (idempotent) => ({ routes: [{ route: 'POST /x', idempotent }] })],
  ];

  describe.each(places)('%s', (_name, path, put) => {
    it.each(['leaseMs', 'maxRunMs', 'waitMs'])('%s is at most a day, as in the library', (name) => {
      expect(issuesOf(put({ [name]: 86_400_001 }))).toEqual([
        `${path}.${name}: must be at most 86400000, got 86400001`,
      ]);
      expect(issuesOf(put({ [name]: 86_400_000 }))).toEqual([]);
    });

    it('accept exactly what createIdempotency accepts', () => {
      const values = [
        -1,
        0,
        1,
        1.5,
        86_400_000,
        86_400_001,
        2 ** 31,
        31_536_000_000,
        31_536_000_001,
        2 ** 53,
        '1',
        null,
        ...words,
      ];
      for (const name of SETTING_NAMES) {
        for (const value of values) {
          const isValid = isAccepted(() =>
            createIdempotency({ store: createMemoryClaimStore(), ...options(name, value) }),
          );
          expect({ name, value, isValid: issuesOf(put({ [name]: value })).length === 0 }).toEqual({
            name,
            value,
            isValid,
          });
        }
      }
    });
  });

  const words = ['reject', 'reexecute', 'reconcile', 'refuse', 'bypass', 'local', ''];
  const options = (name: string, value: unknown) => ({ [name]: value, reconcile: () => 'unknown' as const });
  const isAccepted = (create: () => unknown): boolean => {
    try {
      create();
      return true;
    } catch {
      return false;
    }
  };

  it('a route overrides single settings of the config', () => {
    const config = checkConfig(
      { idempotency: { maxRunMs: 5, waitMs: 6 }, routes: [{ route: 'POST /x', idempotent: { waitMs: 7 } }] },
      'test',
    );
    expect(routesOf(config)[0]?.idempotent).toEqual({
      settings: { ...DEFAULT_SETTINGS, maxRunMs: 5, waitMs: 7 },
      lateAnswerMs: 120_000,
      required: false,
      compares: [],
    });
  });

  it('the secret is a text that is not empty, for all routes', () => {
    expect(checkConfig({ idempotency: { secret: 's' } }, 'test').idempotency.secret).toBe('s');
    expect(issuesOf({ idempotency: { secret: '' } })).toEqual(['idempotency.secret: must not be empty']);
    const missing =
      'idempotency.secret: must be given with compares, so that no reader of the store can guess a compared value';
    const comparing = { route: 'POST /x', idempotent: { compares: ['cookie'] } };
    expect(issuesOf({ idempotency: { compares: ['cookie'] } })).toEqual([missing]);
    expect(issuesOf({ routes: [comparing] })).toEqual([missing]);
    expect(issuesOf({ routes: [comparing], idempotency: { secret: 's' } })).toEqual([]);
    expect(issuesOf({ idempotency: { secret: 's', compares: ['a b'] } })).toEqual([
      'idempotency.compares[0]: must be the name of a header field, got "a b"',
    ]);
    expect(issuesOf({ idempotency: { secret: 5 } })).toEqual([
      'idempotency.secret: must be a string, or { "env": "NAME" } or { "file": "PATH" }, got a number',
    ]);
    expect(issuesOf({ routes: [{ route: 'POST /x', idempotent: { secret: 's' } }] })).toEqual([
      expect.stringMatching(/^routes\[0\]\.idempotent\.secret: unknown option \(expected /),
    ]);
  });

  it('a budget for buffered bodies that is smaller than one body is a warning', () => {
    const paths = (config: object) => warningsFor(checkConfig(config, 'test')).map(({ path }) => path);
    expect(paths({})).not.toContain('maxBufferedBytes');
    expect(paths({ maxBufferedBytes: 1_000_000 })).toContain('maxBufferedBytes');
    expect(paths({ maxBodyBytes: 300_000_000 })).toContain('perApplication.maxBufferedBytes');
  });

  it('a short secret is a warning that does not show it', () => {
    const warnings = (secret: string) =>
      warningsFor(checkConfig({ idempotency: { secret } }, 'test')).filter(({ path }) => path === 'idempotency.secret');
    expect(warnings('p'.repeat(16))).toEqual([]);
    expect(warnings('pppp')).toEqual([{ path: 'idempotency.secret', reason: expect.not.stringContaining('pppp') }]);
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
  ])('%s is valid', (store) => expect(issuesOf({ store })).toEqual([]));

  it.each([
    'mysql://x',
    'redis://',
    'redis://h:99999',
    'redis://a:1,b:2',
    'redis://h/x',
    'redis://%zz@h',
    'redis-cluster://a:1/2',
    'redis-cluster://a:1,',
    '',
  ])('%j is not valid', (store) => {
    expect(issuesOf({ store })).toEqual([expect.stringMatching(/^store: must be memory, redis:/)]);
  });
});

describe('store in PostgreSQL', () => {
  const parsed = (store: unknown) => parseStore(checkConfig({ store }, 'test').store);
  const server = { host: 'h', port: 5_432, database: 'd', username: 'u', password: undefined, sslMode: 'disable' };

  it('a URL is enough; an object has the other settings', () => {
    const defaults = { kind: 'postgres', schema: 'headgate', maxConnections: 10, migrate: false, ca: undefined };
    expect(parsed('postgres://u@h/d')).toEqual({ ...defaults, ...server });
    expect(parsed('postgresql://u%20v:p%40@[::1]:99/d%2F?sslmode=verify-ca')).toEqual({
      ...{ ...defaults, ...server, host: '::1', port: 99, database: 'd/', username: 'u v' },
      ...{ password: 'p@', sslMode: 'verify-ca' },
    });
    expect(parsed('postgres://u@/d?host=/run/pg')).toMatchObject({ host: '/run/pg', port: 5_432 });
    const more = { schema: 'Gate-1', maxConnections: 3, migrate: true };
    const postgres = { url: 'postgres://u@h/d?sslmode=require', password: 'p', ...more };
    expect(parsed({ postgres })).toEqual({ ...defaults, ...server, ...more, password: 'p', sslMode: 'require' });
  });

  it.each([
    'postgres://x',
    'postgres://u:se/cret@h/d',
    'postgres://h/d',
    'postgres://u@h',
    'postgres://u@h:99999/d',
    'postgres://u@/d',
    'postgres://u@a,b/d',
    'postgres://u@h/d#x',
    'postgres://:secret@h/d',
    'postgres://%zz:secret@h/d',
    'postgres://u:secret@h/d?sslmode=prefer',
    'postgres://u@h/d?password=secret',
    'postgres://u@h/d?host=/run',
  ])('%s is not valid, and not shown', (url) => {
    for (const [path, store] of [
      ['store', url],
      ['store.postgres.url', { postgres: { url } }],
    ] as const) {
      const issues = issuesOf({ store });
      expect(issues).toEqual([expect.stringMatching(new RegExp(`^${path}: (must be|the|sslmode)`))]);
      expect(issues.join()).not.toMatch(/secret|cret@/);
    }
  });

  it.each([
    [{}, 'store.postgres.url: is missing: must be a string, or { "env": "NAME" } or { "file": "PATH" }'],
    [{ url: 'postgres://u@h/d', urll: 1 }, 'store.postgres.urll: unknown option, did you mean "url"?'],
    [
      { url: 'postgres://u:a@h/d', password: 'b' },
      'store.postgres.password: the URL has a password already: give only one',
    ],
    [{ url: 'postgres://u@h/d', schema: 'pg_x' }, /^store\.postgres\.schema: must be 1 to 56 of A-Z/],
    [{ url: 'postgres://u@h/d', maxConnections: 0 }, 'store.postgres.maxConnections: must be at least 1'],
    [{ url: 'postgres://u@h/d', ca: 'nowhere.pem' }, 'store.postgres.ca: the file "nowhere.pem" does not exist'],
  ])('%j is not valid', (postgres, issue) => {
    expect(issuesOf({ store: { postgres } })).toEqual([
      typeof issue === 'string' ? issue : expect.stringMatching(issue),
    ]);
  });

  it('a file of certificate authorities makes the check the default, and needs it', () => {
    const { cert, certFile: ca, remove } = createCertificate();
    expect(parsed({ postgres: { url: 'postgres://u@h/d', ca } })).toMatchObject({ sslMode: 'verify-full', ca: cert });
    expect(issuesOf({ store: { postgres: { url: 'postgres://u@h/d?sslmode=disable', ca } } })).toEqual([
      'store.postgres.ca: would not be used with sslmode=disable: write sslmode=verify-full',
    ]);
    remove();
  });

  it('a connection whose certificate nobody checks is a warning', () => {
    const warnings = (store: unknown) =>
      warningsFor(checkConfig({ store }, 'test')).filter(({ path }) => path.startsWith('store'));
    expect(warnings('postgres://u@h/d?sslmode=require')).toEqual([
      { path: 'store', reason: expect.stringContaining('use verify-full') },
    ]);
    expect(warnings({ postgres: { url: 'postgres://u@h/d?sslmode=verify-full' } })).toEqual([]);
  });
});

describe('flags', () => {
  it('override the file', () => {
    const file = { listen: { host: 'h', port: 1 }, upstream: 'http://file', store: 'redis://file' };
    const config = checkConfig(file, 'test', { port: '0', upstream: 'https://flag/base', store: 'memory' });
    expect(config.listen).toEqual({ host: 'h', port: 0 });
    expect(config).toMatchObject({ upstream: 'https://flag/base', store: 'memory' });
  });

  it('--admin-port overrides admin.port, and turns the listener on', () => {
    const flags = { 'admin-port': '9' };
    expect(checkConfig({ admin: { host: 'h', port: 1 } }, 'test', flags).admin).toEqual({
      ...ADMIN,
      host: 'h',
      port: 9,
    });
    expect(checkConfig({}, 'test', flags).admin).toEqual({ ...ADMIN, host: '127.0.0.1', port: 9 });
    expect(checkConfig({}, 'test').admin).toBeUndefined();
    expect(issuesOf({}, { 'admin-port': 'x' })).toEqual(['--admin-port: must be a number, got "x"']);
  });

  it('are named in errors about their values', () => {
    expect(issuesOf({}, { port: '70000', upstream: 'x', store: 'redis://x,y' })).toEqual([
      '--port: must be at most 65535, got 70000',
      '--upstream: must be a URL with http:// or https://, got "x"',
      '--store: must be memory, redis://[user:password@]host:port/db, rediss://…, redis-cluster://host:port,host:port or postgres://user[:password]@host:port/database',
    ]);
    expect(issuesOf({}, { port: '8e3' })).toEqual(['--port: must be a number, got "8e3"']);
    expect(issuesOf({ listen: { port: -1 } }, { host: 'h' })).toEqual(['listen.port: must be at least 0, got -1']);
  });
});

describe('names such as __proto__', () => {
  it('are ordinary names, or errors at their place', () => {
    const file = `{
      "routes": [{ "route": "GET /x", "account": "query.a" }],
      "accounts": [{ "id": "__proto__", "application": "constructor", "provider": "toString" }],
      "limits": { "accounts": { "__proto__": { "allMethods": ["1/1s"] } }, "providers": { "__proto__": {}, "toString": {} } }
    }`;
    const { limits } = parseConfig(file, 'test');
    expect(Object.entries(limits.accounts)).toEqual([['__proto__', { allMethods: ['1/1s'] }]]);
    expect(Object.keys(limits.providers)).toEqual(['__proto__', 'toString']);
    expect(issuesOf('{ "__proto__": 1, "limits": { "accounts": { "__proto__": 5 } } }')).toEqual([
      expect.stringMatching(/^limits\.accounts\.__proto__: must be an object, such as .*, got 5$/),
      expect.stringMatching(/^__proto__: unknown option \(expected \$schema, listen, .* or shadow\)$/),
      'limits.accounts.__proto__: the file has no such account',
    ]);
  });
});

describe('limits without any window', () => {
  const NO_WINDOW =
    'limits: has no window, so no request is limited: add one, such as "default": { "allMethods": ["60/1m"] }, or say so with "unlimited": true';
  const accounts = [
    { id: 'acc_1', application: 'app_1', provider: 'p' },
    { id: 'acc_2', application: 'app_1', provider: 'google' },
  ];
  const limited = [{ route: 'GET /x', account: 'header.x-account' }, { route: 'GET /y' }];

  it.each([
    {},
    { recommended: false },
    { default: {}, providers: {}, accounts: {} },
    { default: { allMethods: [] } },
    { default: { allMethods: { windows: [], scope: 'account' }, routes: { 'GET /x': [] } } },
    { providers: { p: {} }, accounts: { acc_1: { allMethods: [] } } },
  ])('%j is an issue that says how to mean it', (limits) => {
    expect(issuesOf({ accounts, routes: limited, limits })).toEqual([NO_WINDOW]);
    const meant = { accounts, routes: limited, limits: { ...limits, unlimited: true } };
    expect(issuesOf(meant)).toEqual([]);
    // The limiter accepts what the config says.
    expect(limiterOf(checkConfig(meant, 'test'), createMemoryStore()).windowSet(SUBJECT).windows).toEqual([]);
  });

  it('missing altogether, are an issue only if a route has an account', () => {
    expect(issuesOf({ routes: limited })).toEqual([NO_WINDOW]);
    expect(issuesOf({ routes: [{ route: 'GET /y' }] })).toEqual([]);
    expect(issuesOf({ routes: [{ route: 'GET /y' }], limits: {} })).toEqual([NO_WINDOW]);
    expect(limiterOf(checkConfig({}, 'test'), createMemoryStore()).windowSet(SUBJECT).windows).toEqual([]);
  });

  it.each([
    { recommended: true },
    { default: { allMethods: ['1/1m'] } },
    { default: { routes: { 'GET /x': ['1/1m'] } } },
    { providers: { p: { allMethods: { windows: ['1/1m'] } } } },
    { accounts: { acc_1: { allMethods: ['1/1m'] } } },
  ])('%j has a window; `unlimited` beside it is an issue', (limits) => {
    expect(issuesOf({ accounts, routes: limited, limits })).toEqual([]);
    expect(issuesOf({ accounts, routes: limited, limits: { ...limits, unlimited: true } })).toEqual([
      'limits.unlimited: must not be given beside windows',
    ]);
  });

  it('`unlimited` is true or absent; another issue is not hidden', () => {
    expect(issuesOf({ routes: limited, limits: { unlimited: false } })).toEqual([
      'limits.unlimited: must be one of true, got false',
    ]);
    expect(issuesOf({ routes: limited, limits: { default: { allmethods: ['1/1m'] } } })).toEqual([
      expect.stringMatching(/^limits\.default\.allmethods: unknown option, did you mean/),
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

  it('gives each provider its first limits; the file wins by limit name', () => {
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

it('apps/gateway/docs/config.schema.json is up to date (npm run schema)', () => {
  expect(readFileSync(new URL('../../docs/config.schema.json', import.meta.url), 'utf8')).toBe(jsonSchema());
});
