/** Forward auth: what a proxy gets that asks about a request before it forwards it. */
import { readFileSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import { resolve } from 'node:path';
import { eventually, send } from 'headgate-testbed/raw-http';
import { beforeAll, describe, expect, it } from 'vitest';
import { DECISIONS } from '../support/decisions.ts';
import { expectProblem, NO_RATES, ratesOf, sha256, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const CONFIG = {
  decisions: DECISIONS,
  clientAddress: { trustedProxies: ['loopback'] },
  keys: [{ sha256: sha256(TOKEN), application: 'app_1' }],
  accounts: ['acc_1', 'acc_2', 'acc_3', 'acc_4', 'acc_5'].map((id) => ({ id, application: 'app_1' })),
  routes: [
    { route: 'GET /chats', account: 'query.account_id' },
    { route: 'POST /emails', account: 'body.account_id' },
    { route: 'POST /accounts/{account_id}/emails', account: 'path.account_id', idempotent: true },
    { route: 'GET /login', public: true },
    { route: 'GET /open', account: 'none' },
  ],
  perAddress: ['10/1m'],
  limits: { default: { allMethods: ['2/1m'] } },
};
let gateway: InProcess;
let clients = 0;

beforeAll(async () => {
  gateway = await startInProcess(CONFIG);
});

/** Asks as Traefik does: with the fields of the request, and its own. */
function ask(method: string, uri: string, headers: OutgoingHttpHeaders = {}, path = '/decide') {
  const own = { 'x-forwarded-method': method, 'x-forwarded-uri': uri, 'x-forwarded-proto': 'https' };
  const all = {
    'x-api-key': TOKEN,
    // Each request has another client, whom perAddress does not limit.
    'x-forwarded-for': `198.18.0.${++clients}`,
    'x-forwarded-host': 'api.example.com',
    ...own,
    ...headers,
  };
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return send(gateway.decisionsPort, { path, headers: given });
}

/** Asks as nginx does. */
const askForNginx = (method: string, uri: string, headers: OutgoingHttpHeaders = {}) =>
  ask(method, uri, { 'x-original-method': method, 'x-original-uri': uri, ...headers }, '/decide/nginx');

describe('Caddy and Traefik', () => {
  it('accepts a request with all fields, counts it, and then rejects with the answer of the gateway', async () => {
    const first = await ask('GET', '/chats?account_id=acc_1');
    expect(first).toMatchObject({ status: 200, text: '' });
    expect(first.headers['cache-control']).toBe('no-store');
    expect(ratesOf(first)).toMatchObject({ limit: 2, remaining: 1, retryAfter: undefined });
    await ask('GET', '/chats?account_id=acc_1');
    const third = await ask('GET', '/chats?account_id=acc_1');
    expectProblem(third, 429, 'api/too_many_requests');
    expect(ratesOf(third)).toMatchObject({ limit: 2, remaining: 0, retryAfter: expect.any(Number) });
  });

  it('S11: the cost is of the URL that the proxy is configured with', async () => {
    const paid = await ask('GET', '/chats?account_id=acc_2', {}, '/decide?cost=2');
    expect(ratesOf(paid)).toMatchObject({ remaining: 0 });
    expectProblem(await ask('GET', '/chats?account_id=acc_2', {}, '/decide?cost=3'), 422, 'api/cost_exceeds_limit');
    for (const query of ['cost=0', 'cost=1&cost=2', 'cost=x', 'costs=2', 'cost=1e3'])
      expectProblem(await ask('GET', '/open', {}, `/decide?${query}`), 422, 'errors/unprocessable_entity');
  });

  it('any method may ask, and a route is found as for a forwarded request', async () => {
    const headers = { 'x-api-key': TOKEN, 'x-forwarded-method': 'POST', 'x-forwarded-uri': '/accounts/acc_3/emails' };
    const reply = await send(gateway.decisionsPort, { method: 'DELETE', path: '/decide', headers });
    expect(ratesOf(reply)).toMatchObject({ remaining: 1 });
  });

  const ROWS: [string, string, string, OutgoingHttpHeaders, number, string][] = [
    ['no key', 'GET', '/open', { 'x-api-key': undefined }, 401, 'errors/missing_credentials'],
    ['an unknown route', 'PUT', '/open', {}, 404, 'errors/resource_not_found'],
    ['a dot segment', 'GET', '/x/../open', {}, 400, 'errors/malformed_request'],
    ['no account', 'GET', '/chats', {}, 422, 'errors/unprocessable_entity'],
    ['an account in the body', 'POST', '/emails', {}, 422, 'errors/unprocessable_entity'],
    ['no method', 'GET', '/open', { 'x-forwarded-method': undefined }, 400, 'errors/malformed_request'],
    ['two targets', 'GET', '/open', { 'x-forwarded-uri': ['/open', '/open'] }, 400, 'errors/malformed_request'],
  ];
  it.each(ROWS)('%s', async (_row, method, uri, headers, status, type) => {
    expectProblem(await ask(method, uri, headers), status, type);
  });

  it('a client cannot have another request judged by fields of another form', async () => {
    const forged = { 'x-original-method': 'GET', 'x-original-uri': '/open', 'x-original-url': 'http://x/open' };
    expectProblem(await ask('GET', '/chats', forged), 422, 'errors/unprocessable_entity');
  });

  it('the client is the address that the proxy wrote: perAddress and a public route count by it', async () => {
    const from = (last: string) => ({ 'x-api-key': undefined, 'x-forwarded-for': `203.0.113.9, 198.51.100.${last}` });
    for (const remaining of [1, 0]) expect(ratesOf(await ask('GET', '/login', from('1')))).toMatchObject({ remaining });
    expectProblem(await ask('GET', '/login', from('1')), 429, 'api/too_many_requests');
    expect((await ask('GET', '/login', from('2'))).status).toBe(200);
    const statuses = await Promise.all(
      Array.from({ length: 11 }, async () => (await ask('GET', '/open', from('3'))).status),
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    expect(statuses.filter((status) => status === 429)).toHaveLength(1);
  });
});

describe('nginx', () => {
  it('an accepted request is 200; a rejected one is 403, with its true status and its problem in fields', async () => {
    const uri = '/chats?account_id=acc_4';
    expect(ratesOf(await askForNginx('GET', uri))).toMatchObject({ remaining: 1 });
    await askForNginx('GET', uri);
    const rejected = await askForNginx('GET', uri);
    expect(rejected).toMatchObject({ status: 403, text: '' });
    expect(rejected.headers['x-headgate-status']).toBe('429');
    const problem = JSON.parse(rejected.headers['x-headgate-problem'] as string);
    expect(problem).toMatchObject({
      status: 429,
      type: 'api/too_many_requests',
      req_id: rejected.headers['x-request-id'],
    });
    expect(ratesOf(rejected)).toMatchObject({ limit: 2, remaining: 0, retryAfter: expect.any(Number) });
  });

  it('401 stays 401 with its challenge; every other error is 403', async () => {
    const noKey = await askForNginx('GET', '/open', { 'x-api-key': undefined });
    expect(noKey).toMatchObject({ status: 401, headers: { 'x-headgate-status': '401' } });
    expect(noKey.headers['www-authenticate']).toContain('Bearer');
    expect(await askForNginx('GET', '/nowhere')).toMatchObject({
      status: 403,
      headers: { 'x-headgate-status': '404' },
    });
  });

  it("the Ingress controller's X-Original-URL is read as well, but not beside X-Original-URI", async () => {
    const url = { 'x-original-url': 'https://api.example.com:8443/open?x=http://y/z' };
    expect(await askForNginx('GET', '/open', { 'x-original-uri': undefined, ...url })).toMatchObject({ status: 200 });
    const both = await askForNginx('GET', '/open', url);
    expect(both).toMatchObject({ status: 403, headers: { 'x-headgate-status': '400' } });
  });

  it('a reason that is no ASCII fits into the field', async () => {
    const limits = { default: { allMethods: ['0/1m'] } };
    const own = await startInProcess({ ...CONFIG, accounts: [{ id: 'é', application: 'app_1' }], limits });
    const headers = { 'x-api-key': TOKEN, 'x-original-method': 'GET', 'x-original-uri': '/chats?account_id=%C3%A9' };
    const reply = await send(own.decisionsPort, { path: '/decide/nginx', headers });
    expect(reply).toMatchObject({ status: 403, headers: { 'x-headgate-status': '422' } });
    await own.stop();
  });
});

describe('a refund', () => {
  const refund = (receipt: string | undefined, port = gateway.decisionsPort) =>
    send(port, { path: '/decide/refund', headers: receipt === undefined ? {} : { 'x-headgate-receipt': receipt } });

  it('gives a charge back, once, and nothing for a request without a charge', async () => {
    const uri = '/accounts/acc_5/emails';
    const first = await ask('POST', uri);
    const receipt = String(first.headers['x-headgate-receipt']);
    expect(await refund(receipt)).toMatchObject({ status: 200, text: '' });
    expect(await refund(receipt)).toMatchObject({ status: 200, text: '' });
    expect(ratesOf(await ask('POST', uri))).toMatchObject({ remaining: 1 });
    expect((await ask('GET', '/open')).headers['x-headgate-receipt']).toBeUndefined();
    expect((await refund('')).status).toBe(200);
  });

  it('needs a receipt of the gateway, and a trusted proxy', async () => {
    expectProblem(await refund(undefined), 400, 'errors/malformed_request');
    expectProblem(await refund('x'), 422, 'errors/unprocessable_entity');
    const other = await startInProcess({ ...CONFIG, clientAddress: {} });
    expectProblem(await refund('x', other.decisionsPort), 403, 'errors/resource_access_restricted');
    await other.stop();
  });
});

it('only trusted proxies may ask: without trustedProxies, and from an address that is not listed, 403', async () => {
  for (const clientAddress of [{}, { trustedProxies: ['10.0.0.0/8'] }]) {
    const other = await startInProcess({ ...CONFIG, clientAddress });
    const headers = { 'x-api-key': TOKEN, 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/open' };
    const reply = await send(other.decisionsPort, { path: '/decide', headers });
    expect(expectProblem(reply, 403, 'errors/resource_access_restricted').detail).toContain('trustedProxies');
    expect(ratesOf(reply)).toEqual(NO_RATES);
    await other.stop();
  }
});

it('other paths: 404, also /decided', async () => {
  for (const path of ['/decide/', '/decide/caddy', '/decided'])
    expectProblem(await send(gateway.decisionsPort, { path }), 404, 'errors/resource_not_found');
});

it('log and metrics: one line per request, with the method and the route that were judged', async () => {
  const line = await eventually(
    () => gateway.lines().find(({ door, status }) => door === 'forward_auth' && status === 429),
    'the line of the rejection',
  );
  expect(line).toMatchObject({ method: 'GET', route: 'GET /chats', decision: 'rejected' });
  expect(await gateway.metrics()).toMatch(/headgate_decision_requests_total\{door="forward_auth",status="200"\} [1-9]/);
});

it("the page about Traefik asks the gateway's path", () => {
  const page = readFileSync(resolve(import.meta.dirname, '../../docs/other-proxies/traefik.md'), 'utf8');
  expect(page).toContain('address: http://headgate:8082/decide\n');
});
