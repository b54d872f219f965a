import { expect, test } from 'vitest';
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

test('the reference page and its document are served', async () => {
  const document = await (await fetch(`${url}/openapi.json`)).json();
  expect(document).toMatchObject({ openapi: '3.1.0' });
  expect((await fetch(`${url}/docs`)).status).toBe(200);
});
