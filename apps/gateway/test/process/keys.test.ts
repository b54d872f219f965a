/** Which keys may reach which accounts. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, ratesOf, scratchFolder, sha256, startGateway } from '../support/gateway.ts';

const { upstream, gateway } = await gatewayForFile(configOf, {
  keys: [
    { token: 'service-1', application: 'app_1', role: 'service' },
    { sha256: sha256('account-1'), application: 'app_1', role: 'account', expiresAt: '2999-01-01T00:00:00Z' },
    { sha256: sha256('account-1b').toUpperCase(), application: 'app_1', role: 'account' },
    { token: 'scoped-a', application: 'app_1', role: 'scoped', scope: 'scp_a' },
    { token: 'scoped-b', application: 'app_1', role: 'scoped', scope: 'scp_b' },
    { token: 'account-2', application: 'app_2', role: 'account' },
    { token: 'scoped-a-of-2', application: 'app_2', role: 'scoped', scope: 'scp_a' },
    {
      token: 'short-lived',
      application: 'app_1',
      role: 'account',
      expiresAt: new Date(Date.now() + 4_000).toISOString(),
    },
  ],
  accounts: [
    { id: 'free', application: 'app_1', provider: 'mock' },
    { id: 'in_a', application: 'app_1', provider: 'mock', scope: 'scp_a' },
    { id: 'in_b', application: 'app_1', provider: 'mock', scope: 'scp_b' },
    { id: 'two', application: 'app_2', provider: 'mock', scope: 'scp_a' },
  ],
  limits: { default: { allMethods: ['1000/1m'], routes: { 'POST /api/v1/chats': ['3/1m'] } } },
});

const ask = (token: string, account: string, method = 'GET') =>
  gateway.ask(method, `/api/v1/chats?account_id=${account}`, { 'x-api-key': token });

/** The status of the answer, by key and account. */
const reach: Record<string, Record<string, number>> = {
  'service-1': { free: 200, in_a: 200, in_b: 200, two: 404 },
  'account-1': { free: 200, in_a: 200, in_b: 200, two: 404 },
  'scoped-a': { free: 403, in_a: 200, in_b: 403, two: 404 },
  'scoped-b': { free: 403, in_a: 403, in_b: 200, two: 404 },
  'account-2': { free: 404, in_a: 404, in_b: 404, two: 200 },
  'scoped-a-of-2': { free: 404, in_a: 404, in_b: 404, two: 200 },
};

describe('access to accounts', () => {
  it.each(Object.entries(reach))('%s', async (token, accounts) => {
    for (const [account, status] of Object.entries(accounts)) {
      const reply = await ask(token, account);
      expect({ account, status: reply.status }).toEqual({ account, status });
      if (status === 404) expectProblem(reply, 404, 'errors/invalid_resource_identifier');
      if (status === 403) expectProblem(reply, 403, 'errors/resource_access_restricted');
    }
  });

  it('a scoped key uses a route without an account', async () => {
    expect((await gateway.ask('GET', '/api/v1/open', { 'x-api-key': 'scoped-a' })).status).toBe(200);
  });

  it("another tenant's account gets the same answer as one that does not exist", async () => {
    const [other, unknown] = [await ask('account-1', 'two'), await ask('account-1', 'nope')];
    const shape = (text: string, account: string) => {
      const { req_id, ...rest } = JSON.parse(text) as Record<string, unknown>;
      return JSON.stringify(rest).replaceAll(account, 'ACCOUNT');
    };
    expect(shape(other.text, 'two')).toBe(shape(unknown.text, 'nope'));
    expect(Object.keys(other.headers).sort()).toEqual(Object.keys(unknown.headers).sort());
  });
});

describe('keys', () => {
  it("keys of one application use the same account's allowance; refused requests use nothing", async () => {
    const rates = [];
    for (const token of ['scoped-b', 'account-2', 'nobody'])
      expect((await ask(token, 'in_a', 'POST')).status).not.toBe(200);
    for (const token of ['service-1', 'account-1', 'scoped-a']) rates.push(ratesOf(await ask(token, 'in_a', 'POST')));
    expect(rates.map((rate) => rate.limit)).toEqual([1000, 1000, 1000]);
    expect(rates.map((rate) => rate.remaining)).toEqual([999, 998, 997]);
    expectProblem(await ask('service-1', 'in_a', 'POST'), 429, 'api/too_many_requests');
  });

  it('the case of the header name does not matter, the case of the token does', async () => {
    const path = '/api/v1/chats?account_id=free';
    expect((await gateway.ask('GET', path, { 'x-api-key': undefined, 'X-Api-Key': 'account-1' })).status).toBe(200);
    expectProblem(await ask('ACCOUNT-1', 'free'), 401, 'errors/invalid_credentials');
  });

  it('only the complete token authenticates', async () => {
    for (const token of ['account-', 'account-11', 'account', 'app_1', '__proto__', 'constructor', 'x'.repeat(8_000)]) {
      expectProblem(await ask(token, 'free'), 401, 'errors/invalid_credentials');
    }
  });

  it('a token in the query is not accepted', async () => {
    const path = '/api/v1/chats?account_id=free&x-api-key=account-1&access_token=account-1';
    const reply = await gateway.ask('GET', path, { 'x-api-key': undefined });
    expectProblem(reply, 401, 'errors/missing_credentials');
  });

  it('a key that expires while the process runs: 401 api/expired_authorization from then on', async () => {
    const expired = await eventually(async () => {
      const reply = await ask('short-lived', 'free');
      return reply.status === 401 && reply;
    }, 'the expiry of the key');
    expectProblem(expired, 401, 'api/expired_authorization');
  });
});

// A snapshot takes seconds, and many if the machine is busy.
it('a token of the config is not in the memory of the process: its hash is', { timeout: 120_000 }, async () => {
  const folder = scratchFolder();
  const token = `memory-${sha256('a token of this test').slice(0, 24)}`;
  const keys = [{ token, application: 'app_1' }];
  const preload = new URL('../support/debugger-session.mjs', import.meta.url);
  const options = { NODE_OPTIONS: `--import ${preload} --heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${folder}` };
  const one = await startGateway(configOf(upstream.url, { keys }), [], options);
  expect((await one.ask('GET', '/api/v1/open', { 'x-api-key': token.slice(0, -1) })).status).toBe(401);
  one.signal('SIGUSR2');
  // The process answers again after it has written the snapshot.
  await eventually(() => readdirSync(folder).length === 1, 'the file of the snapshot', 60_000);
  expect((await one.ask('GET', '/healthz')).status).toBe(200);
  const snapshot = readFileSync(join(folder, readdirSync(folder)[0] as string), 'latin1');
  expect(snapshot).toContain(sha256(token));
  expect(snapshot).not.toContain(token);
  await one.stop();
});
