import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import type { ApiDocument } from '../../src/api/document.ts';
import { type Operation, operationsOf, parametersIn, pathWith } from '../support/operations.ts';
import { startService } from '../support/service.ts';

const BODY_TIMEOUT_MS = 300;
const MAX_BODY_BYTES = 2_000;

const service = await startService({
  BODY_TIMEOUT_MS: String(BODY_TIMEOUT_MS),
  MAX_BODY_BYTES: String(MAX_BODY_BYTES),
});
const { url } = service;
const { id: application, token, key } = await service.application();
const operations = operationsOf(service.app.swagger() as unknown as ApiDocument);
const account = await service.rooms.accounts.insert(application, {
  provider: 'mock',
  providerUserId: 'me@mock.test',
  name: 'me@mock.test',
  scopeId: null,
  secret: { credentials: { drafts: true } },
});
const to = [{ identifier: 'ann@example.com' }];
const email = { account_id: account?.id, to, body: 'Hello' };

const call = (method: string, path: string, { body, headers = {} }: { body?: string; headers?: object } = {}) =>
  fetch(`${url}${path}`, {
    method,
    headers: { 'x-api-key': token, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body }),
  });

const send = (fields: object, headers: object = {}) =>
  call('POST', '/api/v1/emails', { body: JSON.stringify({ ...email, ...fields }), headers });

const statusOf = async (answer: Promise<Response>): Promise<number> => (await answer).status;

/** Calls every operation that takes part, and expects one status. */
async function expectOfAll(
  status: number,
  takesPart: (operation: Operation) => boolean,
  run: (operation: Operation) => Promise<Response>,
): Promise<void> {
  for (const operation of operations.filter(takesPart)) {
    const answer = await run(operation);
    expect(await answer.json(), operation.operation.operationId).toMatchObject({ status, type: expect.any(String) });
  }
}

const all = (): boolean => true;
const hasBody = ({ method }: Operation): boolean => method !== 'GET';
/** What a header or a cut body makes of a request, which `fetch` does not let us say. */
function cutRequest(path: string, contentLength: number, body: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-api-key': token, 'content-type': 'application/json', 'content-length': contentLength };
    const sent = request(`${url}${path}`, { method: 'POST', headers }, async (answer) => {
      resolve({ status: answer.statusCode ?? 0, text: await text(answer) });
      sent.destroy();
    });
    sent.on('error', reject);
    sent.write(body);
  });
}

test('every operation refuses a request without a key', async () => {
  await expectOfAll(401, all, (operation) => fetch(url + pathWith(operation, 'x'), { method: operation.method }));
});

test('every operation refuses the wrong keys of one address after some time', async () => {
  const other = await startService();
  const headers = { 'x-api-key': 'wrong' };
  let status = 401;
  for (let count = 0; count < 50 && status === 401; count++)
    ({ status } = await fetch(`${other.url}/v2/accounts`, { headers }));
  await expectOfAll(429, all, (operation) =>
    fetch(other.url + pathWith(operation, 'x'), { method: operation.method, headers }),
  );
});

test('every operation refuses a key whose scope is disabled', async () => {
  const { scopes } = service.rooms;
  const { id: scopeId } = await scopes.create(application, { name: 'Closed', reference: null });
  const headers = { 'x-api-key': await key('scoped', scopeId) };
  await scopes.setStatus(application, scopeId, 'disabled');
  await expectOfAll(403, all, (operation) =>
    fetch(url + pathWith(operation, 'x'), { method: operation.method, headers }),
  );
});

test('a body that is not JSON, and a path that cannot be decoded, are a 400', async () => {
  await expectOfAll(400, hasBody, (operation) => call(operation.method, pathWith(operation, 'x'), { body: '{' }));
  const hasParameter = (operation: Operation): boolean => parametersIn(operation, 'path').length > 0;
  await expectOfAll(400, hasParameter, (operation) => call(operation.method, pathWith(operation, '%zz')));
});

test('a body of a media type that is not accepted, and an unknown query parameter, are a 422', async () => {
  await expectOfAll(422, hasBody, (operation) =>
    call(operation.method, pathWith(operation, 'x'), { body: 'x', headers: { 'content-type': 'application/xml' } }),
  );
  const hasQuery = (operation: Operation): boolean => parametersIn(operation, 'query').length > 0;
  await expectOfAll(422, hasQuery, (operation) => call(operation.method, `${pathWith(operation, 'x')}?nonsense=1`));
});

test('a body that is too large is a 413', async () => {
  const body = JSON.stringify({ large: 'x'.repeat(300_000) });
  await expectOfAll(413, hasBody, (operation) => call(operation.method, pathWith(operation, 'x'), { body }));
});

test('a client that pauses in the body of an email gets a 408', async () => {
  expect(await cutRequest('/api/v1/emails', 100, '{"a')).toMatchObject({
    status: 408,
    text: expect.stringContaining('errors/request_timeout'),
  });
});

test('the provider’s own limit is a 429, and its faults are 500, 503 and 504', async () => {
  const to = (address: string) => ({ to: [{ identifier: `${address}@mock.test` }] });
  expect(await statusOf(send(to('limit')))).toBe(429);
  expect(await statusOf(send(to('error.500.provider_error')))).toBe(500);
  expect(await statusOf(send(to('error.503.no_channel')))).toBe(503);
  expect(await statusOf(send(to('drop')))).toBe(504);
});

test('what does not exist is a 404', async () => {
  expect(await statusOf(send({ account_id: 'x' }))).toBe(404);
  expect(await statusOf(call('GET', '/v2/emails/x'))).toBe(404);
  expect(await statusOf(call('GET', '/v2/emails?idempotency_key=x'))).toBe(404);
});

test('an email is found by its id and by its key', async () => {
  const sent = (await (await send({}, { 'idempotency-key': 'mine' })).json()) as { tracking_id: string };
  const byId = await (await call('GET', `/v2/emails/${sent.tracking_id}`)).json();
  expect(byId).toMatchObject({ object: 'Email', id: sent.tracking_id, state: 'sent' });
  expect(await (await call('GET', '/v2/emails?idempotency_key=mine')).json()).toEqual(byId);
  const list = await (await call('GET', '/v2/emails?status=sent&limit=1')).json();
  expect(list).toMatchObject({ object: 'EmailList', data: [{ object: 'Email', state: 'sent' }] });
});

test('a link is created, and is refused for an account that does not exist', async () => {
  const link = { expires_on: new Date(Date.now() + 60_000).toISOString(), redirect_uri: 'https://app.example/cb' };
  const create = (fields: object) => call('POST', '/v2/auth/link', { body: JSON.stringify({ ...link, ...fields }) });
  expect(await (await create({ providers: 'mock' })).json()).toMatchObject({ object: 'AuthLink' });
  expect(await statusOf(create({ account_id: 'x' }))).toBe(404);
});
