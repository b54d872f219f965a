/** A limited route whose requests meet no window: the config looks limited, and is not. */
import { expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { unlimitedRequests } from '../../src/config/unlimited-requests.ts';
import { checkConfig as runCheck } from '../support/check-config.ts';

const WINDOW = { allMethods: ['60/1m'] };
const keyed = (name: string, plan?: string) => ({
  name,
  token: name,
  application: `of ${name}`,
  ...(plan && { plan }),
});
const KEYS = ['acme', 'bolt', 'coco'].map((name) => keyed(name));
const ROUTES = ['GET /*', 'POST /*', 'POST /login'].map((route) => ({ route, account: 'key' }));
const PLACE = 'limits.default.allMethods';
const HOW =
  'add windows here, such as ["60/1m"]; if this is meant, write "account": "none" for the route, or "allMethods": [] for the account or its plan';

function warningsOf(config: object): string[] {
  return unlimitedRequests(checkConfig({ keys: KEYS, routes: ROUTES, ...config }, 'test')).map(({ path, reason }) => {
    expect(path).toBe(PLACE);
    return reason;
  });
}

it('names the routes without a window, however the default leaves it out', () => {
  const routes = { 'POST /login': ['5/15m'] };
  for (const allMethods of [undefined, [], { windows: [] }])
    expect(warningsOf({ limits: { default: { allMethods, routes } } })).toEqual([
      `requests of every key to GET /*, POST /* are not limited: ${HOW}`,
    ]);
  expect(warningsOf({ limits: { default: { ...WINDOW, routes } } })).toEqual([]);
  expect(warningsOf({ limits: { unlimited: true } })).toEqual([]);
});

it('names the keys whose account, plan or provider brings no window', () => {
  expect(warningsOf({ limits: { accounts: { 'key:acme': WINDOW } } })).toEqual([
    `requests of key bolt, coco to GET /*, POST /*, POST /login are not limited: ${HOW}`,
  ]);
  const keys = [keyed('acme', 'pro'), keyed('bolt', 'free'), keyed('coco')];
  const limits = { default: {}, plans: { pro: WINDOW, free: { routes: { 'GET /*': ['1/1m'] } } } };
  expect(warningsOf({ keys, limits })).toEqual([
    `requests of key bolt to POST /*, POST /login are not limited: ${HOW}`,
    `requests of key coco to GET /*, POST /*, POST /login are not limited: ${HOW}`,
  ]);
});

it('is silent if the layer of a plan or an account removes a limit with []', () => {
  const keys = [keyed('acme', 'pro'), keyed('bolt')];
  const plans = { pro: { allMethods: [] } };
  expect(warningsOf({ keys, limits: { default: WINDOW, plans } })).toEqual([]);
  const accounts = { 'key:acme': WINDOW, 'key:bolt': { routes: { 'POST /login': [] } } };
  expect(warningsOf({ keys, limits: { default: {}, plans, accounts } })).toEqual([
    `requests of key bolt to GET /*, POST /* are not limited: ${HOW}`,
  ]);
});

it('judges applications, addresses and the accounts of the config too', () => {
  const accounts = [
    { id: 'acc_1', application: 'of acme', provider: 'p' },
    { id: 'acc_2', application: 'of acme', provider: 'q' },
  ];
  const routes = ['query.id', 'application', 'address'].map((account, i) => ({ route: `GET /${i}`, account }));
  expect(warningsOf({ accounts, routes, limits: { providers: { p: WINDOW } } })).toEqual([
    `requests of account acc_2 to GET /0 are not limited: ${HOW}`,
    `requests of every application to GET /1 are not limited: ${HOW}`,
    'requests of every address to GET /2 are not limited: add windows here, such as ["60/1m"]; if this is meant, write "account": "none" for the route',
  ]);
});

it('with the recommended limits, says for which provider there is none', () => {
  const accounts = ['google', 'gogle', undefined].map((provider, i) => ({
    id: `a${i}`,
    application: 'of acme',
    provider,
  }));
  const config = { accounts, routes: [{ route: 'GET /x', account: 'query.id' }] };
  expect(warningsOf({ ...config, limits: { recommended: true } })).toEqual([
    expect.stringMatching(
      /^requests of account a1, a2 to GET \/x are not limited \(none is recommended for the provider "gogle", did you mean "google"\?\): /,
    ),
  ]);
  expect(warningsOf({ ...config, limits: { recommended: true, default: WINDOW } })).toEqual([]);
});

it('writes a few lines, however many keys and routes there are', () => {
  const keys = Array.from({ length: 5_000 }, (_, i) => keyed(`k${i}`));
  const routes = Array.from({ length: 50 }, (_, i) => ({ route: `GET /${i}`, account: 'key' }));
  const ofKey = (i: number) => [`key:k${i}`, { routes: { [`GET /${i % 50}`]: ['1/1m'] } }];
  const accounts = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => ofKey(i)));
  const lines = warningsOf({ keys, routes, limits: { accounts } });
  expect(lines).toHaveLength(4);
  expect(lines[0]).toMatch(
    /^requests of key k0, k50, k100 and 17 more to GET \/1, GET \/2, GET \/3 and 46 more are not /,
  );
  expect(lines[3]).toBe('requests of 4940 more (key) to some of their routes are not limited either');
  expect(lines.every((line) => line.length < 400)).toBe(true);
});

it('`check` prints the warning, and its table says who is not limited', async () => {
  const limits = { default: {}, accounts: { 'key:acme': WINDOW } };
  const { code, all } = await runCheck({ keys: KEYS, routes: ROUTES.slice(0, 1), limits });
  expect(code).toBe(0);
  expect(all).toContain(`warning: ${PLACE}: requests of key bolt, coco to GET /* are not limited: ${HOW}\n`);
  expect(all).toMatch(/^\(any other\) {2}GET \/\* {2}not limited$/m);
  expect(all).toMatch(/^key:acme {2}GET \/\* {2}- +60\/1m$/m);
});
