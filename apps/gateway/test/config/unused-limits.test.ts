/** Limits that no request can reach are faults, because such a config looks limited. */
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/config-error.ts';

const KEYS = [
  { name: 'one', token: 'one', application: 'app_1' },
  { name: 'two', token: 'two', application: 'app_2' },
];
const WINDOW = { allMethods: ['1/1m'] };
const LIMITS = { default: WINDOW };
const ROUTES = [{ route: 'GET /x' }, { route: 'GET /y' }];
const BY_KEY = [{ route: 'GET /x', account: 'key' }];
const BY_NAME = [{ route: 'GET /x', account: 'header.x-account' }];

const issuesOf = (config: object): string[] => {
  try {
    checkConfig(config, 'test');
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map(({ path, reason }) => `${path}: ${reason}`);
    throw error;
  }
  return [];
};

const accountsOf = (config: object) => checkConfig(config, 'test').routes.map(({ account }) => account);

describe('routes without an account', () => {
  it('count per key, if the config has keys and limits and no route has an account', () => {
    expect(accountsOf({ keys: KEYS, routes: ROUTES, limits: LIMITS })).toEqual(['key', 'key']);
    const open = [...ROUTES, { route: 'GET /open', account: 'none' }];
    expect(accountsOf({ keys: KEYS, routes: open, limits: LIMITS })).toEqual(['key', 'key', 'none']);
    const shadow = { limits: LIMITS };
    expect(accountsOf({ keys: KEYS, routes: ROUTES, limits: { unlimited: true }, shadow })).toEqual(['key', 'key']);
  });

  it('count per address if they are public', () => {
    const routes = [{ route: 'POST /login', public: true }, { route: 'GET /x' }];
    expect(accountsOf({ keys: KEYS, routes, limits: LIMITS })).toEqual(['address', 'key']);
    expect(accountsOf({ routes: routes.slice(0, 1), limits: LIMITS })).toEqual(['address']);
    expect(accountsOf({ routes: [...routes.slice(0, 1), ...BY_NAME], limits: LIMITS })).toEqual([
      'address',
      'header.x-account',
    ]);
    const byAddress = [{ route: 'POST /login', public: true, account: 'address' }, { route: 'GET /x' }];
    expect(accountsOf({ keys: KEYS, routes: byAddress, limits: LIMITS })).toEqual(['address', 'key']);
  });

  it('are not limited without limits, and beside a route with an account', () => {
    expect(accountsOf({ keys: KEYS, routes: ROUTES })).toEqual([undefined, undefined]);
    expect(accountsOf({ keys: KEYS, routes: ROUTES, limits: { unlimited: true } })).toEqual([undefined, undefined]);
    const mixed = [{ route: 'GET /x' }, { route: 'GET /y', account: 'address' }];
    expect(accountsOf({ keys: KEYS, routes: mixed, limits: LIMITS })).toEqual([undefined, 'address']);
  });

  it('are a fault with limits and without keys; without routes every request is refused', () => {
    expect(issuesOf({ routes: ROUTES, limits: LIMITS })).toEqual([
      expect.stringMatching(/^limits: no route counts requests, .*"account": "key".*or give the config keys/),
    ]);
    const open = ROUTES.map(({ route }) => ({ route, account: 'none' }));
    expect(issuesOf({ keys: KEYS, routes: open, limits: LIMITS })).toEqual([
      expect.stringMatching(/^limits: no route counts requests, so no request is limited: give the routes/),
    ]);
    expect(issuesOf({ routes: [], limits: LIMITS })).toEqual([]);
  });
});

describe('limits that no request can reach', () => {
  it('of a route without an account, in every layer, also of a candidate', () => {
    const layer = { routes: { 'GET /free': ['1/1m'], 'GET /x': ['1/1m'] } };
    const routes = [{ route: 'GET /free' }, ...BY_NAME];
    const limits = { default: layer, providers: { p: layer } };
    expect(issuesOf({ routes, limits, shadow: { limits: { default: layer } } })).toEqual(
      ['limits.default', 'limits.providers.p', 'shadow.limits.default'].map(
        (path) =>
          `${path}.routes["GET /free"]: the route has no account, so this never applies: give it one, such as "account": "key"`,
      ),
    );
  });

  it('of an account that no route can have', () => {
    const config = { keys: KEYS, accounts: [{ id: 'acc_1', application: 'app_1' }] };
    const accounts = { acc_1: WINDOW, 'key:one': WINDOW, 'application:app_1': WINDOW, 'address:192.0.2.1': WINDOW };
    const limits = { default: WINDOW, accounts };
    expect(issuesOf({ ...config, routes: BY_KEY, limits })).toEqual([
      'limits.accounts.acc_1: no route takes its account from the request, so this never applies',
      'limits.accounts["application:app_1"]: no route has "account": "application", so this never applies',
      'limits.accounts["address:192.0.2.1"]: no route has "account": "address", so this never applies',
    ]);
    const all = ['key', 'application', 'address', 'query.id'].map((account, i) => ({ route: `GET /${i}`, account }));
    expect(issuesOf({ ...config, routes: all, limits })).toEqual([]);
    const onRoute = { default: WINDOW, accounts: { 'key:one': { routes: { 'GET /1': ['1/1m'] } } } };
    expect(issuesOf({ ...config, routes: all, limits: onRoute })).toEqual([
      'limits.accounts["key:one"].routes["GET /1"]: the route counts by application, so this never applies',
    ]);
  });

  it('of a name that no key has, or of an address in another form', () => {
    const byAddress = [...BY_KEY, { route: 'GET /y', account: 'address' }];
    const accounts = { 'key:won': {}, 'address:2001:db8::1': {}, 'address:2001:db8::/56': {}, 'address:x': {} };
    const issues = issuesOf({ keys: KEYS, routes: byAddress, limits: { default: WINDOW, accounts } });
    expect(issues.sort()).toEqual([
      'limits.accounts["address:2001:db8::1"]: never applies: write it as "address:2001:db8::/56"',
      'limits.accounts["address:x"]: must name an address, such as "address:192.0.2.1"',
      'limits.accounts["key:won"]: the file has no such account, did you mean "key:one"?',
    ]);
  });

  it('of providers, if no route takes its account from the request', () => {
    const limits = { recommended: true, default: WINDOW, providers: { outlook: WINDOW } };
    expect(issuesOf({ keys: KEYS, routes: BY_KEY, limits })).toEqual([
      expect.stringMatching(/^limits\.providers\.outlook: never applies, because no route takes/),
      expect.stringMatching(/^limits\.recommended: never applies/),
    ]);
  });

  it('of providers and plans that no account has, if there are no others', () => {
    const accounts = [{ id: 'acc_1', application: 'app_1', provider: 'outlook' }];
    const config = { keys: KEYS, accounts, routes: BY_NAME };
    expect(issuesOf({ ...config, limits: { providers: { outlok: WINDOW } } })).toEqual([
      'limits.providers.outlok: no account has this provider, so no request is limited: add limits of "default", did you mean "outlook"?',
    ]);
    expect(issuesOf({ ...config, limits: { providers: { outlok: WINDOW, outlook: WINDOW } } })).toEqual([]);
    const byKeyToo = { ...config, accounts: [], routes: [...BY_NAME, { route: 'GET /y', account: 'key' }] };
    expect(issuesOf({ ...byKeyToo, limits: { providers: { outlook: WINDOW } } })).toEqual([
      'limits.providers.outlook: no account has this provider, so no request is limited: add limits of "default"',
    ]);
    expect(issuesOf({ ...config, limits: { default: {}, plans: { pro: WINDOW } } })).toEqual([
      'limits.plans.pro: no account has this plan, so no request is limited: add limits of "default"',
    ]);
    const own = [{ id: 'acc_1', application: 'app_1', provider: 'own' }];
    expect(issuesOf({ ...config, accounts: own, limits: { recommended: true } })).toEqual([
      'limits: no account has a provider with recommended limits, so no request is limited: add limits of "default"',
    ]);
  });
});

it('a public route has no key, so it has neither its account nor idempotency keys', () => {
  const routes = ['key', 'application', 'query.id', 'address', 'none'].map((account, i) => ({
    route: `GET /${i}`,
    account,
    public: true,
    ...(i === 4 && { idempotent: true }),
  }));
  expect(issuesOf({ keys: KEYS, routes, limits: LIMITS })).toEqual([
    ...[0, 1, 2].map(
      (i) => `routes[${i}].account: a public route has no API key that may reach an account: use "address" or "none"`,
    ),
    expect.stringMatching(/^routes\[4\]\.idempotent: must not be given for a public route/),
  ]);
});

describe('keys', () => {
  const limits = { default: {}, plans: { free: WINDOW, pro: WINDOW } };

  it('have one name each, and a plan that exists; a fault shows no value', () => {
    const keys = [
      { name: 'one', token: 'a', application: 'a', plan: 'prro' },
      { name: 'one', token: 'b', application: 'a', plan: 'pro' },
    ];
    expect(issuesOf({ keys, routes: BY_KEY, limits })).toEqual([
      'keys[1].name: is also the name of keys[0]',
      'keys[0].plan: limits.plans has no such plan: free, pro',
    ]);
  });

  it('of one application have one plan, if a route counts by application', () => {
    const keys = ['pro', 'free'].map((plan) => ({ token: plan, application: 'a', plan }));
    expect(issuesOf({ keys, routes: BY_KEY, limits })).toEqual([]);
    expect(issuesOf({ keys, routes: [{ route: 'GET /x', account: 'application' }], limits })).toEqual([
      'keys[1].plan: must be that of keys[0], of the same application, because a route counts by application',
    ]);
  });
});

it('an account of the config cannot have the id of a key, an application or an address', () => {
  const accounts = ['key:one', 'address:::1', 'application:', 'keys:one'].map((id) => ({ id, application: 'a' }));
  expect(issuesOf({ accounts })).toEqual(
    ['key', 'address', 'application'].map(
      (word, i) =>
        `accounts[${i}].id: must not begin with ${word}:, because such ids are of what "account": "${word}" counts`,
    ),
  );
});

it.each([
  [{ perAddress: [] }, 'perAddress: must have a window, such as "600/1m"'],
  [{ perAddress: {} }, 'perAddress.windows: is missing (expected an array)'],
  [{ perAddress: ['1/1m', '2/1m'] }, expect.stringMatching(/^perAddress: /)],
  [{ perAddress: ['1'] }, expect.stringMatching(/^perAddress\[0\]: /)],
  [
    { perAddress: { windows: ['1/1m'], perNetwork: ['1/1m'] }, clientAddress: { ipv6Prefix: 48 } },
    'perAddress.perNetwork: needs a clientAddress.ipv6Prefix of more than 48 bits',
  ],
])('%j', (config, issue) => {
  expect(issuesOf(config)).toEqual([issue]);
});

it.each([
  [
    ['20/1m'],
    'limits: must be an object, such as { "default": { "allMethods": { "windows": ["60/1m"], "scope": "account" } } }, got an array',
  ],
  [
    { default: ['20/1m'] },
    'limits.default: must be an object, such as { "allMethods": { "windows": ["60/1m"], "scope": "account" } }, got an array',
  ],
  [
    { default: {}, plans: { pro: ['20/1m'] } },
    'limits.plans.pro: must be an object, such as { "allMethods": { "windows": ["60/1m"], "scope": "account" } }, got an array',
  ],
  [
    { allMethods: ['20/1m'] },
    'limits.allMethods: unknown option here: it belongs in a layer, as in "default": { "allMethods": … }',
  ],
  [{ routes: {} }, 'limits.routes: unknown option here: it belongs in a layer, as in "default": { "routes": … }'],
  [{ defualt: {} }, 'limits.defualt: unknown option, did you mean "default"?'],
])('limits in a form of the library say what to write: %j', (...[limits, issue]) => {
  expect(issuesOf({ keys: KEYS, routes: BY_KEY, limits })).toEqual([issue]);
});

it('clientAddress: a proxy that is no address, and a header that is no name', () => {
  const clientAddress = { trustedProxies: ['loopback', '0.0.0.0/0', 'x'], header: 'a b' };
  expect(issuesOf({ clientAddress })).toEqual([
    expect.stringMatching(/^clientAddress\.trustedProxies\[1\]: must be a block within its address family/),
    expect.stringMatching(/^clientAddress\.trustedProxies\[2\]: must be an address, a CIDR block, or one of/),
    expect.stringMatching(/^clientAddress\.header: must be the name of a header, got "a b"/),
  ]);
  const header = 'CF-Connecting-IP';
  for (const given of [{ header }, { header, trustedProxies: 0 }, { header, trustedProxies: [] }])
    expect(issuesOf({ clientAddress: given })).toEqual([
      'clientAddress.header: is read only from trusted proxies: name yours in clientAddress.trustedProxies',
    ]);
  expect(issuesOf({ clientAddress: { header, trustedProxies: 1 } })).toEqual([]);
  expect(issuesOf({ clientAddress: { header: 'X-Forwarded-For' } })).toEqual([]);
  expect(issuesOf({ clientAddress: { trustedProxies: -1 } })).toEqual([
    'clientAddress.trustedProxies: must be at least 0, got -1',
  ]);
});
