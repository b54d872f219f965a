/** Who may ask the Admin API what, and what it says to everything else. On real sockets. */

import { waitFor } from 'headgate-testbed/patience';
import { openRaw, send } from 'headgate-testbed/raw-http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { ADMIN, type AdminGateway, askAdmin, startAdminGateway, TOKENS } from '../support/admin.ts';
import { configOf, expectProblem } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process.ts';

const NOWHERE = 'http://127.0.0.1:1';
let gateway: AdminGateway;

beforeEach(async () => {
  gateway = await startAdminGateway(NOWHERE);
});
afterEach(async () => {
  vi.useRealTimers();
  await gateway.stop();
});

const metric = async (name: string): Promise<string | undefined> =>
  (await gateway.metrics()).split('\n').find((line) => line.startsWith(name));

describe('without tokens', () => {
  it.each([
    ['GET', '/v1/status', 404],
    ['GET', '/v1/openapi.json', 404],
    ['POST', '/v1/drain', 404],
    ['POST', '/metrics', 404],
    ['GET', '/metrics', 200],
    ['GET', '/livez', 200],
    ['GET', '/readyz', 200],
  ])('%s %s: %i, whatever token is sent', async (method, path, status) => {
    const plain = await startInProcess(configOf(NOWHERE));
    const reply = await askAdmin(plain.adminPort, method, path, { json: {} });
    expect(reply.status).toBe(status);
    if (status === 404) expectProblem(reply, 404, 'errors/resource_not_found');
    await plain.stop();
  });

  it('a reload turns the Admin API on and off', async () => {
    const config = { listen: { port: 0 }, ...configOf(NOWHERE) };
    const reload = (tokens: readonly unknown[]) =>
      gateway.gateway.reload(checkConfig({ ...config, admin: { ...ADMIN, tokens } }, 'test'));
    expect((await gateway.admin('GET', '/v1/status')).status).toBe(200);
    expect(await reload([])).toMatchObject({ changed: ['admin.tokens'] });
    expect((await gateway.admin('GET', '/v1/status')).status).toBe(404);
    await reload(ADMIN.tokens.slice(0, 1));
    expect((await gateway.admin('GET', '/v1/status', { as: 'viewer' })).status).toBe(200);
    expectProblem(await gateway.admin('GET', '/v1/status'), 401, 'errors/invalid_credentials');
  });
});

describe('a request is let in by its token', () => {
  it('without one: 401 with a challenge', async () => {
    const reply = await gateway.admin('GET', '/v1/status', { as: undefined });
    expectProblem(reply, 401, 'errors/missing_credentials');
    expect(reply.headers['www-authenticate']).toMatch(/^Bearer/);
  });

  it('with an unknown or an expired one: 401, and it is counted', async () => {
    const unknown = await gateway.admin('GET', '/v1/status', {
      as: undefined,
      headers: { authorization: 'Bearer no' },
    });
    expectProblem(unknown, 401, 'errors/invalid_credentials');
    expectProblem(await gateway.admin('GET', '/v1/status', { as: 'expired' }), 401, 'api/expired_authorization');
    expect(await metric('headgate_admin_auth_failures_total')).toBe('headgate_admin_auth_failures_total 2');
  });

  it.each(['X-API-KEY', 'Cookie'])('not by %s, and not by the query', async (name) => {
    const headers = { [name]: TOKENS.admin };
    const reply = await gateway.admin('GET', `/v1/status?token=${TOKENS.admin}`, { as: undefined, headers });
    expectProblem(reply, 401, 'errors/missing_credentials');
  });

  it('ten unknown tokens of an address: 429 for a minute, also for a valid token', async () => {
    for (let i = 0; i < 10; i++) {
      const ask = { as: undefined, headers: { authorization: `Bearer guess-${i}` } };
      expect((await gateway.admin('GET', '/v1/status', ask)).status).toBe(401);
    }
    const reply = await gateway.admin('GET', '/v1/status');
    expectProblem(reply, 429, 'api/too_many_requests');
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(50);
    // What needs no token goes on.
    for (const path of ['/livez', '/metrics', '/v1/openapi.json'])
      expect((await gateway.admin('GET', path, { as: undefined })).status).toBe(200);
  });

  it('an open console whose token has expired does not lock the other operators of its address out', async () => {
    for (let i = 0; i < 11; i++)
      expectProblem(await gateway.admin('GET', '/v1/status', { as: 'expired' }), 401, 'api/expired_authorization');
    expect((await gateway.admin('GET', '/v1/status')).status).toBe(200);
  });

  it('nor does one whose token a reload has removed: only different tokens are guesses', async () => {
    const removed = { as: undefined, headers: { authorization: 'Bearer a-removed-token' } };
    for (let i = 0; i < 11; i++)
      expectProblem(await gateway.admin('GET', '/v1/status', removed), 401, 'errors/invalid_credentials');
    expect((await gateway.admin('GET', '/v1/status')).status).toBe(200);
  });

  it('a page that makes the browser of the operator send requests does not lock it out', async () => {
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' };
    for (let i = 0; i < 11; i++)
      expect((await gateway.admin('GET', '/v1/status', { as: undefined, headers })).status).toBe(401);
    expect((await gateway.admin('GET', '/v1/status')).status).toBe(200);
  });

  it.each([
    ['a reload has removed', { tokens: ADMIN.tokens.slice(1) }],
    ['a reload has ended', { tokens: [{ ...ADMIN.tokens[0], expiresAt: '2020-01-01T00:00:00Z' }] }],
  ])('a token that %s gets no more events', async (_, changed) => {
    vi.useFakeTimers({ toFake: ['setInterval'] });
    const client = await openRaw(gateway.adminPort);
    const fields = `Host: localhost\r\nAuthorization: Bearer ${TOKENS.viewer}\r\n`;
    client.write(`GET /v1/events HTTP/1.1\r\n${fields}\r\n`);
    await new Promise((resolve) => client.socket.once('data', resolve));
    vi.advanceTimersByTime(15_000);
    expect((await gateway.admin('GET', '/v1/status')).status).toBe(200);
    expect(client.socket.destroyed).toBe(false);
    const config = { listen: { port: 0 }, ...configOf(NOWHERE), admin: { ...ADMIN, ...changed } };
    await gateway.gateway.reload(checkConfig(config, 'test'));
    const closed = new Promise((resolve) => client.socket.once('close', resolve));
    vi.advanceTimersByTime(15_000);
    await closed;
  });

  it('a role that is too low: 403 that names both', async () => {
    const problem = expectProblem(
      await gateway.admin('POST', '/v1/drain', { as: 'operator', json: {} }),
      403,
      'errors/insufficient_permissions',
    );
    expect(problem.detail).toBe('This needs the role admin; the token has operator.');
    expect((await send(gateway.adminPort, { path: '/readyz' })).status).toBe(200);
  });
});

describe('a page of another origin gets nothing', () => {
  it.each(['evil.example', 'evil.example:8081', '10.0.0.1', '127.0.0.1.evil.example'])(
    'Host: %s: 403',
    async (host) => {
      const reply = await gateway.admin('GET', '/v1/status', { headers: { host } });
      expectProblem(reply, 403, 'errors/resource_access_restricted');
    },
  );

  it.each(['localhost', '127.0.0.1:9', '[::1]:8081', 'OPS.example.com:443'])('Host: %s is let in', async (host) => {
    const named = await startAdminGateway(NOWHERE, { admin: { ...ADMIN, hosts: ['ops.example.com'] } });
    expect((await named.admin('GET', '/v1/status', { headers: { host } })).status).toBe(200);
    await named.stop();
  });

  it('a request with two hosts, or with none: 400', async () => {
    for (const hosts of ['Host: localhost\r\nHost: localhost\r\n', 'Host: a@b\r\n']) {
      const client = await openRaw(gateway.adminPort);
      client.write(`GET /v1/status HTTP/1.1\r\n${hosts}\r\n`);
      expect((await client.waitFor(1))[0]?.status).toBe(400);
      client.destroy();
    }
  });

  it.each(['cross-site', 'same-site'])('Sec-Fetch-Site: %s may not change anything', async (site) => {
    const headers = { 'sec-fetch-site': site };
    expectProblem(
      await gateway.admin('POST', '/v1/drain', { json: {}, headers }),
      403,
      'errors/resource_access_restricted',
    );
    expect((await send(gateway.adminPort, { path: '/readyz' })).status).toBe(200);
    expect((await gateway.admin('GET', '/v1/status', { headers })).status).toBe(200);
  });

  it('no answer has a field of CORS', async () => {
    const reply = await gateway.admin('GET', '/v1/status', { headers: { origin: 'https://evil.example' } });
    expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});

describe('a wrong request is 4xx with the place, and changes nothing', () => {
  const json = { account: 'acc_1', reason: 'x' };

  it.each<[string, string, object, number, string, string | RegExp]>([
    ['GET', '/v1/nothing', {}, 404, 'errors/resource_not_found', 'The Admin API has no such path.'],
    ['GET', '/v1/status/', {}, 404, 'errors/resource_not_found', 'The Admin API has no such path.'],
    ['DELETE', '/v1/windows/reset', {}, 405, 'errors/method_not_allowed', 'This path has only POST.'],
    ['GET', '/v1/drain', {}, 405, 'errors/method_not_allowed', 'This path has only POST.'],
    ['HEAD', '/v1/status', {}, 405, 'errors/method_not_allowed', ''],
    ['GET', '/v1/windows', {}, 422, 'errors/unprocessable_entity', 'account: is missing (expected a string)'],
    ['GET', '/v1/windows?account=', {}, 422, 'errors/unprocessable_entity', 'account: must not be empty'],
    [
      'GET',
      '/v1/windows?account=a&account=b',
      {},
      422,
      'errors/unprocessable_entity',
      'account: is given more than once',
    ],
    [
      'GET',
      '/v1/windows?acount=a',
      {},
      422,
      'errors/unprocessable_entity',
      /acount: unknown option, did you mean "account"\?/,
    ],
    [
      'GET',
      '/v1/windows?account=%zz',
      {},
      400,
      'errors/malformed_request',
      'The query has a malformed percent-encoding.',
    ],
    [
      'GET',
      '/v1/windows?account=nobody',
      {},
      404,
      'errors/invalid_resource_identifier',
      'The config has no such account.',
    ],
    [
      'GET',
      '/v1/windows?account=__proto__',
      {},
      404,
      'errors/invalid_resource_identifier',
      'The config has no such account.',
    ],
    [
      'GET',
      '/v1/windows?account=acc_1&route=GET%20/x',
      {},
      404,
      'errors/resource_not_found',
      'The config has no such route with an account.',
    ],
    ['GET', '/v1/keys?limit=501', {}, 422, 'errors/unprocessable_entity', 'limit: must be at most 500, got 501'],
    ['GET', '/v1/keys?limit=ten', {}, 422, 'errors/unprocessable_entity', 'limit: must be a number, got "ten"'],
    [
      'GET',
      '/v1/keys?cursor=zzz',
      {},
      422,
      'errors/unprocessable_entity',
      'cursor: must be `next` of an answer of this list',
    ],
    ['GET', '/v1/status?x=1', {}, 422, 'errors/unprocessable_entity', /^x: unknown option/],
    [
      'GET',
      '/v1/top?by=most',
      {},
      422,
      'errors/unprocessable_entity',
      'by: must be one of "rejected", "near", "accepted", got "most"',
    ],
    [
      'POST',
      '/v1/windows/reset',
      { json: {} },
      422,
      'errors/unprocessable_entity',
      'account: give account or route, or "all": true',
    ],
    [
      'POST',
      '/v1/windows/reset',
      { json: { ...json, all: true } },
      422,
      'errors/unprocessable_entity',
      'all: must not be given beside account and route',
    ],
    [
      'POST',
      '/v1/windows/reset',
      { json: { ...json, extra: 1 } },
      422,
      'errors/unprocessable_entity',
      /^extra: unknown option/,
    ],
    [
      'POST',
      '/v1/windows/reset',
      { body: '{"account":"acc_1","__proto__":{}}', headers: { 'content-type': 'application/json' } },
      422,
      'errors/unprocessable_entity',
      /__proto__: unknown option/,
    ],
    [
      'POST',
      '/v1/windows/reset',
      { json: { account: { env: 'HOME' } } },
      422,
      'errors/unprocessable_entity',
      /^account: must be a string/,
    ],
    [
      'POST',
      '/v1/windows/reset',
      { json: { account: 'acc_1', reason: 'x\ny' } },
      422,
      'errors/unprocessable_entity',
      /^reason: must be at most 500 characters/,
    ],
    [
      'POST',
      '/v1/windows/reset',
      { body: '{' },
      415,
      'errors/unsupported_media_type',
      /content-type: application\/json/,
    ],
    [
      'POST',
      '/v1/windows/reset',
      { body: 'account=acc_1', headers: { 'content-type': 'text/plain' } },
      415,
      'errors/unsupported_media_type',
      /JSON/,
    ],
    [
      'POST',
      '/v1/windows/reset',
      { body: '{"a":1,"a":2}', headers: { 'content-type': 'application/json' } },
      400,
      'errors/malformed_request',
      /"a" appears twice/,
    ],
    [
      'POST',
      '/v1/windows/reset',
      { body: Buffer.from([0x22, 0xff, 0x22]), headers: { 'content-type': 'application/json' } },
      400,
      'errors/malformed_request',
      /UTF-8/,
    ],
    ['POST', '/v1/windows/reset', { json: { account: 'x'.repeat(65_536) } }, 413, 'errors/payload_too_large', /65536/],
    [
      'POST',
      '/v1/explain',
      { json: { account: 'acc_1', route: 'GET /api/v1/chats', cost: 0 } },
      422,
      'errors/unprocessable_entity',
      'cost: must be at least 1, got 0',
    ],
  ])('%s %s %j: %i', async (method, path, ask, status, type, detail) => {
    const reply = await gateway.admin(method, path, ask);
    expect(reply.status).toBe(status);
    expect(reply.headers).toMatchObject({ 'cache-control': 'no-store', 'x-request-id': expect.any(String) });
    if (status === 405) expect(reply.headers.allow).toMatch(/^[A-Z, ]+$/);
    if (method === 'HEAD') return;
    const problem = expectProblem(reply, status, type);
    expect(problem.detail).toEqual(typeof detail === 'string' ? detail : expect.stringMatching(detail));
  });

  it('a body without a length past 64 KiB: 413', async () => {
    const client = await openRaw(gateway.adminPort);
    client.write(
      `POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKENS.admin}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    for (let i = 0; i < 9; i++) client.write(`2000\r\n${'x'.repeat(8_192)}\r\n`);
    expect((await client.waitFor(1))[0]?.status).toBe(413);
    client.destroy();
  });
});

it('a change is logged with the name of its token and its reason; a token is in no log and no metric', async () => {
  await gateway.admin('POST', '/v1/windows/reset', { as: 'operator', json: { account: 'acc_1', reason: 'INC-12' } });
  await gateway.admin('GET', '/v1/status', {
    as: undefined,
    headers: { authorization: 'Bearer a-wrong-token-of-somebody' },
  });
  await waitFor(() => {
    expect(gateway.lines()).toContainEqual(
      expect.objectContaining({ msg: 'windows reset', by: 'olaf', reason: 'INC-12', route: null }),
    );
    expect(gateway.lines()).toContainEqual(
      expect.objectContaining({ msg: 'admin request', operation: 'resetWindows', by: 'olaf', status: 200 }),
    );
  });
  const seen = `${JSON.stringify(gateway.lines())}${await gateway.metrics()}`;
  for (const secret of [...Object.values(TOKENS), 'a-wrong-token-of-somebody', 'acc_1'])
    expect(seen).not.toContain(secret);
  expect(await metric('headgate_admin_requests_total{operation="resetWindows"')).toMatch(/status="200"} 1$/);
});
