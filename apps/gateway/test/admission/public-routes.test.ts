/** Routes whose requests need no API key: a login page, or a service that checks its own credentials. */
import { startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { ratesOf } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process.ts';

const upstream = await startUpstream();
const limits = { default: { allMethods: ['5/1m'], routes: { 'POST /login': ['2/1m'] } } };
const gateway = await startInProcess({
  upstream: upstream.url,
  clientAddress: { trustedProxies: ['loopback'] },
  perApplication: { maxRequests: 100 },
  log: { application: true },
  keys: [{ token: 'good', application: 'app_1' }],
  routes: [
    { route: 'POST /login', public: true },
    { route: 'GET /page', public: true, account: 'none' },
    { route: 'GET /api' },
  ],
  limits,
});

const ask = (method: string, path: string, headers: Record<string, string | undefined> = {}) =>
  gateway.ask(method, path, { 'x-api-key': undefined, 'x-forwarded-for': '192.0.2.1', ...headers });

it('a public route needs no key, and counts by address unless it says otherwise', async () => {
  const login = () => ask('POST', '/login');
  const statuses = [];
  for (const one of [login, login, login]) statuses.push((await one()).status);
  expect(statuses).toEqual([200, 200, 429]);
  expect((await ask('POST', '/login', { 'x-forwarded-for': '192.0.2.2' })).status).toBe(200);
  const page = await ask('GET', '/page');
  expect([page.status, ratesOf(page).limit]).toEqual([200, undefined]);
});

it('every other route needs a key, and counts by it', async () => {
  expect((await ask('GET', '/api')).status).toBe(401);
  expect(ratesOf(await ask('GET', '/api', { 'x-api-key': 'good' })).remaining).toBe(4);
});

it.each([
  [
    'the credentials of the service',
    { 'x-api-key': 'theirs', authorization: 'Bearer theirs' },
    ['theirs', 'Bearer theirs'],
  ],
  ['no key of the gateway', { 'x-api-key': 'good', authorization: 'Basic x' }, [undefined, 'Basic x']],
  ['no key of the gateway in Authorization', { authorization: 'Bearer good' }, [undefined, undefined]],
])('forwards %s', async (_what, headers, forwarded) => {
  expect((await ask('GET', '/page', headers)).status).toBe(200);
  const { headers: seen } = upstream.last();
  expect([seen['x-api-key'], seen.authorization]).toEqual(forwarded);
});

it('the log names the application only if the request carries its key', async () => {
  const ids: unknown[] = [];
  for (const headers of [{}, { 'x-api-key': 'good' }])
    ids.push((await ask('GET', '/page', headers)).headers['x-request-id']);
  const applicationOf = (id: unknown) => gateway.lines().find(({ req_id }) => req_id === id)?.application;
  await expect.poll(() => ids.map(applicationOf)).toEqual([null, 'app_1']);
});

it('a service without any key of the gateway: each address is limited', async () => {
  const open = await startInProcess({
    upstream: upstream.url,
    routes: [{ route: 'GET /*', public: true }],
    limits: { default: { allMethods: ['1/1m'] } },
  });
  const statuses = [];
  for (const path of ['/a', '/b']) statuses.push((await open.ask('GET', path)).status);
  expect(statuses).toEqual([200, 429]);
});
