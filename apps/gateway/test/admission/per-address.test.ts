/** Limits by address in front of all other stages. */
import { startUpstream } from 'headgate-testbed/upstream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AdminGateway, startAdminGateway } from '../support/admin.ts';
import { expectProblem, TOKEN } from '../support/gateway.ts';

const upstream = await startUpstream();

let gateway: AdminGateway;
let count = 0;
/** A new address for each test, because the counts stay. */
let address: string;

beforeEach(() => {
  count++;
  address = `192.0.2.${count}`;
});

const start = (rest: Record<string, unknown> = {}) =>
  startAdminGateway(upstream.url, {
    perAddress: ['2/1m'],
    clientAddress: { trustedProxies: ['loopback'] },
    log: { account: true },
    ...rest,
  });

gateway = await start();
const CHATS = '/api/v1/chats?account_id=acc_1';
const ask = (path = CHATS, headers: Record<string, string | undefined> = {}, from = address) =>
  gateway.ask('GET', path, { 'x-forwarded-for': from, ...headers });
const statuses = async (...asks: (() => ReturnType<typeof ask>)[]) => {
  const found: number[] = [];
  for (const one of asks) found.push((await one()).status);
  return found;
};

describe('perAddress', () => {
  afterEach(() => {
    upstream.seen.length = 0;
  });

  it.each([
    ['good keys', CHATS, { 'x-api-key': TOKEN }, 200],
    ['bad keys', CHATS, { 'x-api-key': 'guess' }, 401],
    ['no keys', CHATS, { 'x-api-key': undefined }, 401],
    ['unknown routes', '/wp-login.php', {}, 404],
    ['bad paths', '/a/%2e%2e/b', {}, 400],
  ])('counts requests with %s', async (_what, path, headers, status) => {
    const one = () => ask(path, headers);
    expect(await statuses(one, one, one, () => ask(CHATS))).toEqual([status, status, 429, 429]);
    expect(await statuses(() => ask(CHATS, {}, `198.51.100.${count}`))).toEqual([200]);
  });

  it('rejects with 429 and the fields of a rejection, and the request does not reach the upstream', async () => {
    await statuses(ask, ask);
    upstream.seen.length = 0;
    const reply = await ask();
    expectProblem(reply, 429, 'api/too_many_requests');
    expect(reply.headers).toMatchObject({
      'retry-after': expect.stringMatching(/^\d+$/),
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-request-id': expect.any(String),
    });
    expect(upstream.seen).toEqual([]);
  });

  it('an accepted request shows the limit of its account', async () => {
    expect((await ask()).headers).toMatchObject({ 'x-ratelimit-limit': '1000' });
  });

  it('counts neither health checks nor what a proxy did not write', async () => {
    const health = () => ask('/healthz');
    expect(await statuses(health, health, health, ask, ask)).toEqual([200, 200, 200, 200, 200]);
    expect(await statuses(() => ask(CHATS, {}, `forged, ${address}`))).toEqual([429]);
  });

  it('counts the block of an IPv6 client, and its network', async () => {
    const from = (group: number) => ask(CHATS, {}, `2001:db8:${count}:${(group * 256).toString(16)}::1`);
    expect(await statuses(...[1, 1, 1].map((group) => () => from(group)))).toEqual([200, 200, 429]);
    const many = Array.from({ length: 15 }, (_, i) => [i + 2, i + 2]).flat();
    const found = await statuses(...many.map((group) => () => from(group)), () => from(99));
    expect(found).toEqual([...many.map(() => 200), 429]);
  });

  it('a rejection has a line in the log, a count in the metrics, and a trace', async () => {
    const before = gateway.lines().length;
    await statuses(ask, ask);
    const { headers } = await ask();
    const id = headers['x-request-id'] as string;
    const trace = await gateway.admin('GET', `/v1/decisions?req_id=${id}`);
    expect(JSON.parse(trace.text)).toMatchObject({ account: `address:${address}`, route: '*', outcome: 'rejected' });
    const metrics = await gateway.metrics();
    expect(metrics).toMatch(/^headgate_address_decisions_total\{outcome="rejected"\} [1-9]/m);
    expect(metrics).not.toContain(address);
    await expect
      .poll(() =>
        gateway
          .lines()
          .slice(before)
          .find(({ req_id }) => req_id === id),
      )
      .toMatchObject({ status: 429, decision: 'rejected', route: null, account: `address:${address}` });
  });
});

it('its counts are not those of a route that counts by address', async () => {
  gateway = await start({
    routes: [{ route: 'GET /x', account: 'address' }],
    limits: { default: { allMethods: { windows: ['9/1m'], scope: 'account' } } },
  });
  const reply = await ask('/x');
  expect(reply.headers).toMatchObject({ 'x-ratelimit-limit': '9', 'x-ratelimit-remaining': '8' });
  // A block is about the routes, after the address has its turn.
  const account = `address:${address}`;
  const block = await gateway.admin('PUT', `/v1/block?account=${account}`, { json: { forMs: 60_000, reason: 'r' } });
  expect(block.status).toBe(200);
  expect(await statuses(() => ask('/nowhere'), ask)).toEqual([404, 429]);
});

it('an answer to a page of another origin has the fields of CORS; preflights are not counted', async () => {
  gateway = await start({ cors: { origins: ['https://app.example'] } });
  const origin = { origin: 'https://app.example' };
  const preflight = () =>
    gateway.ask('OPTIONS', CHATS, {
      ...origin,
      'x-forwarded-for': address,
      'access-control-request-method': 'GET',
    });
  expect(await statuses(preflight, preflight, preflight, ask, ask)).toEqual([204, 204, 204, 200, 200]);
  const reply = await ask(CHATS, origin);
  expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([429, 'https://app.example']);
});

it('without log.account, no line contains the address', async () => {
  gateway = await start({ log: {} });
  await statuses(ask, ask, ask);
  await expect.poll(() => gateway.lines().filter(({ status }) => status === 429).length).toBe(1);
  expect(JSON.stringify(gateway.lines())).not.toContain(address);
});
