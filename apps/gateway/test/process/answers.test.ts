/** Every row of the table of answers in apps/gateway/docs/gateway.md that needs no broken upstream. */

import { answer } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, NO_RATES, ratesOf, sha256, TOKEN } from '../support/gateway.ts';

const { upstream, gateway } = await gatewayForFile(configOf, {
  maxBodyBytes: 1024,
  keys: [
    { sha256: sha256(TOKEN), application: 'app_1', role: 'account' },
    { sha256: sha256('expired'), application: 'app_1', role: 'account', expiresAt: '2020-01-01T00:00:00Z' },
    { token: 'scoped', application: 'app_1', role: 'scoped', scope: 'scp_a' },
  ],
  accounts: [
    { id: 'acc_1', application: 'app_1', provider: 'mock', scope: 'scp_a' },
    { id: 'acc_2', application: 'app_1', provider: 'mock', scope: null },
    { id: 'acc_other', application: 'app_2', provider: 'mock' },
  ],
  limits: { default: { allMethods: ['1000/1m'], routes: { 'POST /api/v1/chats': ['1/1m'] } } },
});

/** The rows that never reach the upstream, in the order of the table. */
const CHATS = '/api/v1/chats?account_id=acc_1';
const rows: [
  row: string,
  method: string,
  path: string,
  headers: Record<string, string | undefined>,
  status: number,
  type: string,
][] = [
  ['no X-API-KEY', 'GET', CHATS, { 'x-api-key': undefined }, 401, 'errors/missing_credentials'],
  ['an unknown token', 'GET', CHATS, { 'x-api-key': 'nobody' }, 401, 'errors/invalid_credentials'],
  ['an expired token', 'GET', CHATS, { 'x-api-key': 'expired' }, 401, 'api/expired_authorization'],
  ['the hash of a token', 'GET', CHATS, { 'x-api-key': sha256(TOKEN) }, 401, 'errors/invalid_credentials'],
  ['a path that is not in routes', 'GET', '/api/v1/nowhere', {}, 404, 'errors/resource_not_found'],
  ['the route before the key', 'GET', '/api/v1/nowhere', { 'x-api-key': undefined }, 404, 'errors/resource_not_found'],
  ['no account in the query', 'GET', '/api/v1/chats', {}, 422, 'errors/unprocessable_entity'],
  ['no account in the header', 'POST', '/api/v1/messages', {}, 422, 'errors/unprocessable_entity'],
  ['the key before the account', 'GET', '/api/v1/chats', { 'x-api-key': 'nobody' }, 401, 'errors/invalid_credentials'],
  ['an unknown account', 'GET', '/api/v1/chats?account_id=nobody', {}, 404, 'errors/invalid_resource_identifier'],
  [
    'an unknown account in the path',
    'GET',
    '/api/v1/accounts/nobody/chats',
    {},
    404,
    'errors/invalid_resource_identifier',
  ],
  [
    "another application's account",
    'GET',
    '/api/v1/chats?account_id=acc_other',
    {},
    404,
    'errors/invalid_resource_identifier',
  ],
  [
    'a scoped key, an account outside its scope',
    'GET',
    '/api/v1/chats?account_id=acc_2',
    { 'x-api-key': 'scoped' },
    403,
    'errors/resource_access_restricted',
  ],
  ['the account given twice', 'GET', `${CHATS}&account_id=acc_2`, {}, 422, 'errors/unprocessable_entity'],
  ['the same account given twice', 'GET', `${CHATS}&account_id=acc_1`, {}, 422, 'errors/unprocessable_entity'],
  ['the account twice, once encoded', 'GET', `${CHATS}&account%5Fid=acc_2`, {}, 422, 'errors/unprocessable_entity'],
  ['an empty account', 'GET', '/api/v1/chats?account_id=', {}, 422, 'errors/unprocessable_entity'],
  ['an account without a value', 'GET', '/api/v1/chats?account_id', {}, 422, 'errors/unprocessable_entity'],
  [
    'an empty account in the header',
    'POST',
    '/api/v1/messages',
    { 'x-account-id': '' },
    422,
    'errors/unprocessable_entity',
  ],
];

it.each(rows)('answers: %s', async (_row, method, path, headers, status, type) => {
  const reply = await gateway.ask(method, path, headers);
  expectProblem(reply, status, type);
  expect(ratesOf(reply)).toEqual(NO_RATES);
  expect(upstream.seen).toHaveLength(0);
});

it('answers: GET /healthz needs no key', async () => {
  const reply = await gateway.ask('GET', '/healthz', { 'x-api-key': undefined });
  expect(reply.status).toBe(200);
  expect(JSON.parse(reply.text)).toEqual({ status: 'ok' });
  expect(reply.headers['content-type']).toMatch(/^application\/json\b/);
  expect(upstream.seen).toHaveLength(0);
});

it('answers: another method of /healthz is not a route', async () => {
  expectProblem(await gateway.ask('POST', '/healthz'), 404, 'errors/resource_not_found');
});

it('answers: the account header given twice is 422', async () => {
  const reply = await gateway.ask('POST', '/api/v1/messages', { 'x-account-id': ['acc_1', 'acc_2'] });
  expectProblem(reply, 422, 'errors/unprocessable_entity');
});

it('answers: two X-API-KEY headers are not a valid key', async () => {
  const reply = await gateway.ask('GET', CHATS, { 'x-api-key': [TOKEN, 'scoped'] });
  expectProblem(reply, 401, 'errors/invalid_credentials');
  expect(upstream.seen).toHaveLength(0);
});

it('answers: an empty X-API-KEY is 401', async () => {
  expectProblem(await gateway.ask('GET', CHATS, { 'x-api-key': '' }), 401, 'errors/missing_credentials');
});

it('answers: a body over maxBodyBytes is 413, and charges nothing', async () => {
  const tooLarge = await gateway.ask('POST', '/api/v1/chats?account_id=acc_1', {}, { body: Buffer.alloc(1025) });
  expectProblem(tooLarge, 413, 'errors/payload_too_large');
  expect(ratesOf(tooLarge)).toEqual(NO_RATES);
  expect(upstream.seen).toHaveLength(0);
  const fits = await gateway.ask('POST', '/api/v1/chats?account_id=acc_1', {}, { body: Buffer.alloc(1024) });
  expect(fits.status).toBe(200);
  expect(upstream.last().bytes()).toBe(1024);
});

it('answers: over the limit is 429 api/too_many_requests', async () => {
  const path = '/api/v1/chats?account_id=acc_2';
  expect((await gateway.ask('POST', path)).status).toBe(200);
  expectProblem(await gateway.ask('POST', path), 429, 'api/too_many_requests');
  expect(upstream.seen).toHaveLength(1);
});

it.each([
  [201, { 'content-type': 'application/json', 'x-own': 'yes' }, '{"object":"EmailSent"}'],
  [400, { 'content-type': 'text/plain' }, 'bad'],
  [404, { 'content-type': 'text/html' }, '<p>gone</p>'],
  [418, {}, ''],
  [500, { 'content-type': 'application/json' }, '{"theirs":true}'],
  [503, { 'content-type': 'text/plain', 'retry-after': '7' }, 'later'],
])('answers: other answers of the upstream are passed on unchanged: %i', async (status, headers, body) => {
  upstream.behave(answer({ status, headers, body }));
  const reply = await gateway.ask('GET', CHATS);
  expect({ status: reply.status, text: reply.text }).toEqual({ status, text: body });
  expect(reply.headers).toMatchObject(headers);
});

it('answers: 204 and 304 are passed on without a body', async () => {
  for (const status of [204, 304]) {
    upstream.behave(answer({ status, headers: { etag: '"1"' }, body: '' }));
    const reply = await gateway.ask('GET', CHATS);
    expect({ status: reply.status, text: reply.text, etag: reply.headers.etag }).toEqual({
      status,
      text: '',
      etag: '"1"',
    });
  }
});
