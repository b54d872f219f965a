import { patient } from 'headgate-testbed/patience';
import { startRedis } from 'headgate-testbed/redis-server';
import { afterAll, describe, expect, test } from 'vitest';
import { limitProvider } from '../../src/limits/account-limits.ts';
import { linkAccount } from '../support/accounts.ts';
import { clientOf, inDays } from '../support/client.ts';
import { newMember } from '../support/dashboard.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';

/** How soon a change in one process holds in another one. */
const NOTICED_MS = 1_000;

const database = await createTestDatabase();
// Hooks run in the reverse order, so the services close first.
afterAll(() => database.drop());
const redis = await startRedis();
afterAll(() => redis.stop());
const environment = { DATABASE_URL: database.url, TRUSTED_PROXIES: 'loopback' };
const withRedis = { ...environment, REDIS_URL: `redis://127.0.0.1:${redis.port}` };
const [one, other] = [await startService(environment), await startService(environment)];
const pairs = [
  { place: 'PostgreSQL', pair: [one, other] as const },
  { place: 'Redis', pair: [await startService(withRedis), await startService(withRedis)] as const },
];
const { id: applicationId, token } = await one.application();
const [here, there] = [clientOf(one.url, token), clientOf(other.url, token)];
const provider = limitProvider(applicationId, 'mock');
const route = 'POST /api/v1/emails';

/** The maxes of an account, as a process would apply them. */
const maxesOf = ({ rooms }: typeof one, account: string, of = provider) =>
  rooms.limits.shared.windowSet({ account, provider: of, route: 'GET /other' }).windows.map(({ max }) => max);

const soon = { timeout: patient(NOTICED_MS), interval: 20 };

describe('a change in one process holds in the other one within a second', () => {
  test('of a limit', async () => {
    const { id: account_id } = await linkAccount(one.rooms, applicationId);
    const windows = async () => (await there('GET', `/v2/limits?account_id=${account_id}`)).body.data[0].windows;
    expect(await windows()).toEqual(['60/1m', '5000/1d']);
    await here('PUT', '/v2/limits', { account_id, windows: ['1/1m'] });
    await expect.poll(windows, soon).toEqual(['1/1m']);
    expect(maxesOf(other, account_id)).toEqual([1]);
    await here('DELETE', `/v2/limits?account_id=${account_id}`);
    await expect.poll(windows, soon).toEqual(['60/1m', '5000/1d']);
  });

  test('of the first limit of an application that is new', async () => {
    const { id, token } = await one.application();
    await clientOf(one.url, token)('PUT', '/v2/limits', { provider: 'imap', windows: ['2/1m'] });
    await expect.poll(() => maxesOf(other, 'acc', limitProvider(id, 'imap')), soon).toEqual([2]);
  });

  test('of a key that is revoked, and of a scope that is disabled', async () => {
    const scope_id = (await here('POST', '/v2/scopes', { name: 'a' })).body.id;
    const key = async (access: object) =>
      (await here('POST', '/v2/api-keys', { name: 'a', expires_at: inDays(1), access })).body;
    const [global, scoped] = [await key({ type: 'global' }), await key({ type: 'scope', scope_id })];
    const status = async (token: string) => (await clientOf(other.url, token)('GET', '/v2/accounts')).status;
    expect([await status(global.api_key), await status(scoped.api_key)]).toEqual([200, 200]);
    await here('DELETE', `/v2/api-keys/${global.id}`);
    await here('POST', `/v2/scopes/${scope_id}/disable`);
    await expect.poll(() => status(global.api_key), { ...soon, interval: 100 }).toBe(401);
    await expect.poll(() => status(scoped.api_key), { ...soon, interval: 100 }).toBe(403);
  });
});

test.each(pairs)(
  'all processes count together in $place, and a reset in one of them holds in the other',
  async ({ pair }) => {
    const { id: account } = await linkAccount(one.rooms, applicationId);
    await here('PUT', '/v2/limits', { account_id: account, windows: ['2/1m'] });
    for (const each of pair) await expect.poll(() => maxesOf(each, account), soon).toEqual([2]);
    const consume = async ({ rooms }: typeof one) =>
      (await rooms.limiter.consume({ account, provider, route })).accepted;
    const [first, second] = pair;
    expect([await consume(first), await consume(second)]).toEqual([true, true]);
    expect([await consume(first), await consume(second)]).toEqual([false, false]);
    const call = clientOf(first.url, token);
    expect((await call('POST', '/v2/limits/counters/reset', { account_id: account })).status).toBe(200);
    // A process remembers a rejection for up to a second.
    await expect.poll(() => consume(second), { timeout: patient(2 * NOTICED_MS) }).toBe(true);
  },
);

test('with LIMIT_LEASES, processes decide ahead, and never admit more than the limit', async () => {
  const leasing = await Promise.all([0, 1].map(() => startService({ ...environment, LIMIT_LEASES: 'true' })));
  const { id: account } = await linkAccount(one.rooms, applicationId);
  await here('PUT', '/v2/limits', { account_id: account, windows: ['300/1h'] });
  for (const each of leasing) await expect.poll(() => maxesOf(each, account), soon).toEqual([300]);
  let accepted = 0;
  for (let round = 0; round < 10; round++) {
    const decide = ({ rooms }: typeof one) => rooms.limiter.consume({ account, provider, route: 'GET /other' });
    const decisions = await Promise.all(leasing.flatMap((each) => Array.from({ length: 20 }, () => decide(each))));
    accepted += decisions.filter((decision) => decision.accepted).length;
  }
  expect(accepted).toBeLessThanOrEqual(300);
  expect(accepted).toBeGreaterThan(250);
  expect((await leasing[0]?.rooms.metrics.render())?.text).toMatch(/^headgate_leases_decisions_total [1-9]/m);
});

test('decisions in PostgreSQL at the same time share a statement', async () => {
  const calls = async () =>
    Number(/^headgate_postgres_store_calls_total (\d+)$/m.exec((await one.rooms.metrics.render()).text)?.[1]);
  const before = await calls();
  const consume = (_: unknown, i: number) => one.rooms.limiter.consume({ account: `acc_${i}`, provider, route });
  const decisions = await Promise.all(Array.from({ length: 60 }, consume));
  expect(decisions.filter(({ accepted, degraded }) => accepted && degraded !== true)).toHaveLength(60);
  expect((await calls()) - before).toBeLessThanOrEqual(3);
});

test('changes of one limit at the same time in both processes leave both with the same limit', async () => {
  const { id: account_id } = await linkAccount(one.rooms, applicationId);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      (i % 2 === 0 ? here : there)('PUT', '/v2/limits', { account_id, windows: [`${i + 1}/1m`] }),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  await one.rooms.limits.refresh();
  const [stored] = one.rooms.limits.shared.list().filter(({ target }) => target.account === account_id);
  const max = stored?.windows[0]?.max;
  expect(max).toBeGreaterThan(0);
  for (const each of [one, other]) await expect.poll(() => maxesOf(each, account_id), soon).toEqual([max]);
});

test('a key and an account do not get into a scope while it is being deleted', async () => {
  for (let i = 0; i < 10; i++) {
    const scope_id = (await here('POST', '/v2/scopes', { name: 'a' })).body.id;
    const { id: account_id } = await linkAccount(one.rooms, applicationId);
    const access = { type: 'scope', scope_id };
    const [removed, key, account] = await Promise.all([
      here('DELETE', `/v2/scopes/${scope_id}`),
      there('POST', '/v2/api-keys', { name: 'a', expires_at: inDays(1), access }),
      there('PATCH', `/v2/accounts/${account_id}`, { scope_id }),
    ]);
    if (removed.status === 200) {
      expect(account.status).toBe(404);
      // The key was made before and revoked, or it was refused.
      expect((await here('GET', `/v2/api-keys?account_scope_id=${scope_id}`)).body.data).toEqual([]);
    } else expect([removed.status, account.status, key.status]).toEqual([409, 200, 200]);
  }
});

/** Where people sign in from. A process remembers that it has refused an address. */
let address = '198.51.100.1';
const newBrowser = ({ url }: typeof one): PlainBrowser => new PlainBrowser(url, { 'x-forwarded-for': address });

/** Tries a password in a new browser. @returns the status of the answer */
async function signIn(service: typeof one, email: string, password: string): Promise<number> {
  const browser = newBrowser(service);
  await browser.open('/dashboard/sign-in');
  const { path, body } = browser.form('/sign-in', { email, password });
  return (await browser.request(path, { method: 'POST', body })).status;
}

/** Sends a form that no page of the service has. It counts, and no password is compared. */
const sendForm = async (service: typeof one): Promise<number> =>
  (await newBrowser(service).request('/dashboard/sign-in', { method: 'POST', body: new URLSearchParams() })).status;

test.each(pairs)(
  'sign-in attempts in all processes count together in $place: passwords by login, and forms by address',
  async ({ place, pair: [one, other] }) => {
    address = `198.51.100.${place.length}`;
    const password = secret();
    const { email } = await newMember(one.db, 'admin', password);
    expect(await signIn(one, email, 'wrong')).toBe(422);
    // The right password forgives, in every process.
    expect(await signIn(other, email, password)).toBe(303);
    for (let i = 0; i < 5; i++)
      expect([await signIn(one, email, 'wrong'), await signIn(other, email, 'wrong')]).toEqual([422, 422]);
    expect([await signIn(one, email, password), await signIn(other, email, password)]).toEqual([429, 429]);
    // These were 14 forms of one address. It may send 20 per minute.
    for (let i = 0; i < 3; i++) expect([await sendForm(one), await sendForm(other)]).toEqual([403, 403]);
    expect([await sendForm(one), await sendForm(other)]).toEqual([429, 429]);
  },
);

test('wrong API keys and forms of the wizard count together', async () => {
  address = '198.51.100.4';
  const headers = { 'x-forwarded-for': address };
  const wrongKey = async ({ url }: typeof one) =>
    (await fetch(`${url}/v2/accounts`, { headers: { ...headers, 'x-api-key': 'wrong' } })).status;
  for (let i = 0; i < 10; i++) expect([await wrongKey(one), await wrongKey(other)]).toEqual([401, 401]);
  expect([await wrongKey(one), await wrongKey(other)]).toEqual([429, 429]);
  const form = async ({ url }: typeof one) =>
    (await fetch(`${url}/auth/l/made-up/choose`, { method: 'POST', headers })).status;
  for (let i = 0; i < 15; i++) for (const each of [one, other]) expect(await form(each)).not.toBe(429);
  expect([await form(one), await form(other)]).toEqual([429, 429]);
});

test('a sign-in that began in one process goes on in the other, and codes in all processes count together', async () => {
  address = '198.51.100.3';
  const password = secret();
  const member = await newMember(one.db, 'admin', password);
  const { secondFactors } = one.rooms.people;
  await secondFactors.setUp(member, secondFactors.offer(member.id), { step: 1, replaces: undefined, sessionId: '' });
  const browser = newBrowser(one);
  await browser.open('/dashboard/sign-in');
  await browser.submit('/sign-in', { email: member.email, password });
  const { path, body } = browser.form('/code', { code: '000000' });
  const elsewhere = newBrowser(other);
  for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value);
  const statuses: number[] = [];
  for (const client of [browser, elsewhere, browser, elsewhere, browser, elsewhere])
    statuses.push((await client.request(path, { method: 'POST', body })).status);
  expect(statuses).toEqual([422, 422, 422, 422, 422, 429]);
});

test('counters that cannot be reached are a 503, and requests are still limited by each process', async () => {
  const [one] = pairs[1]?.pair ?? [];
  if (one === undefined) throw new Error('No service counts in Redis.');
  const { id: account_id } = await linkAccount(one.rooms, applicationId);
  const here = clientOf(one.url, token);
  await redis.kill();
  const answer = await here('POST', '/v2/limits/counters/reset', { account_id });
  expect(answer).toMatchObject({ status: 503, body: { type: 'errors/service_unavailable' } });
  const decision = await one.rooms.limiter.consume({ account: account_id, provider, route });
  expect(decision).toMatchObject({ accepted: true, degraded: true });
});

test('while Redis is away, each process counts sign-in attempts, and the right password opens the dashboard', async () => {
  const [one, other] = pairs[1]?.pair ?? [];
  if (one === undefined || other === undefined) throw new Error('No services count in Redis.');
  address = '198.51.100.2';
  const password = secret();
  const { email } = await newMember(one.db, 'admin', password);
  for (let i = 0; i < 20; i++) expect(await sendForm(one)).toBe(403);
  expect(await sendForm(one)).toBe(429);
  expect(await signIn(other, email, password)).toBe(303);
  expect(other.logged()).toContain('the attempts of a login were not forgotten');
});
