import { expect, test } from 'vitest';
import type { ApiDocument } from '../../src/api/document.ts';
import { operationsOf, pathWith } from '../support/operations.ts';
import { startService } from '../support/service.ts';

const { url, application } = await startService();

test('a request without a key is a 401 that says where the key goes', async () => {
  const answer = await fetch(`${url}/v2/accounts`);
  expect(answer.status).toBe(401);
  expect(await answer.json()).toMatchObject({
    type: 'errors/missing_credentials',
    detail: 'Send your API key in the header X-API-KEY.',
  });
});

test('an unknown path is a 404 with the form of every error', async () => {
  const { token } = await application();
  const answer = await fetch(`${url}/v2/nothing`, { headers: { 'x-api-key': token } });
  expect(answer.status).toBe(404);
  expect(await answer.json()).toEqual({
    title: 'Not found',
    detail: 'No operation has this method and path. See /docs.',
    type: 'errors/resource_not_found',
    status: 404,
    req_id: answer.headers.get('x-request-id'),
  });
});

test('an empty body with the type of JSON is no body', async () => {
  const { token } = await application();
  const headers = { 'x-api-key': token, 'content-type': 'application/json' };
  const request = async (method: string, path: string, body?: string) =>
    (await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body }) })).status;
  expect(await request('POST', '/v2/scopes/scp_1/disable')).toBe(404);
  expect(await request('DELETE', '/v2/scopes/scp_1')).toBe(404);
  expect(await request('POST', '/v2/scopes')).toBe(422);
  expect(await request('POST', '/v2/scopes', '{')).toBe(400);
  expect(await request('POST', '/v2/scopes', '{"name":"a","__proto__":{}}')).toBe(400);
});

test.each([
  ['/v2/scopes', 'application/json or application/x-www-form-urlencoded'],
  ['/api/v1/emails', 'multipart/form-data or application/json or application/x-www-form-urlencoded'],
])('POST %s without a body, or with another type, says which types are accepted', async (path, types) => {
  const { token } = await application();
  const detailOf = async (headers: Record<string, string>, body?: string) => {
    const init = {
      method: 'POST',
      headers: { 'x-api-key': token, ...headers },
      ...(body === undefined ? {} : { body }),
    };
    const answer = await fetch(url + path, init);
    expect(answer.status).toBe(422);
    return ((await answer.json()) as { readonly detail: string }).detail;
  };
  const missing = `The body is missing. Send one with Content-Type: ${types}.`;
  expect(await detailOf({})).toBe(missing);
  expect(await detailOf({ 'content-type': 'application/json' })).toBe(missing);
  expect(await detailOf({ 'content-type': 'application/json' }, 'null')).toContain('expected object, received null');
  expect(await detailOf({ 'content-type': 'text/xml' }, '<a/>')).toBe(
    `Content-Type: this operation does not accept it. Send ${types}.`,
  );
});

test('HEAD answers as GET, without the body', async () => {
  const { token } = await application();
  const gets = operationsOf((await (await fetch(`${url}/openapi.json`)).json()) as ApiDocument)
    .filter(({ method }) => method === 'GET')
    .map((operation) => pathWith(operation, 'x'));
  expect(gets).toContain('/v2/accounts');
  for (const path of [...gets, '/', '/docs', '/openapi.json', '/healthz', '/dashboard/sign-in']) {
    const headOf = async (method: string) => {
      const answer = await fetch(url + path, { method, headers: { 'x-api-key': token }, redirect: 'manual' });
      const { 'content-type': type, 'content-length': length, location } = Object.fromEntries(answer.headers);
      return { head: [path, answer.status, type, length, location], body: await answer.text() };
    };
    const [get, head] = [await headOf('GET'), await headOf('HEAD')];
    expect(head).toEqual({ head: get.head, body: '' });
  }
});

test('the reference page and its document are served', async () => {
  const document = await (await fetch(`${url}/openapi.json`)).json();
  expect(document).toMatchObject({ openapi: '3.1.0' });
  expect((await fetch(`${url}/docs`)).status).toBe(200);
});
