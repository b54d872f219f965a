/** Which requests are refused in front of the gate, and in which order. */

import { openRaw, type RawReply } from 'headgate-testbed/raw-http';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { configOf, expectProblem, NO_RATES, ratesOf, sha256, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

let upstream: Upstream;
let gateway: InProcess;
const CHATS = '/api/v1/chats?account_id=acc_1';

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startInProcess(
    configOf(upstream.url, {
      maxBodyBytes: 100,
      keys: [
        { sha256: sha256(TOKEN), application: 'app_1' },
        { token: 'expired', application: 'app_1', expiresAt: '2020-01-01T00:00:00Z' },
        { token: 'scoped', application: 'app_1', role: 'scoped', scope: 'scp_a' },
      ],
      accounts: [
        { id: 'acc_1', application: 'app_1', scope: 'scp_a' },
        { id: 'acc_2', application: 'app_1' },
        { id: 'a é/?', application: 'app_1' },
        { id: 'acc_other', application: 'app_2' },
      ],
    }),
  );
});
afterAll(() => gateway.stop());
beforeEach(() => {
  upstream.seen.length = 0;
});

const NO_KEY = { 'x-api-key': undefined };
const UNPROCESSABLE = 'errors/unprocessable_entity';
type Row = [row: string, method: string, path: string, headers: Record<string, unknown>, status: number, type: string];
const rows: Row[] = [
  [
    'stages: a malformed path before everything else',
    'GET',
    '/api/v1/%2e%2e/x',
    NO_KEY,
    400,
    'errors/malformed_request',
  ],
  ['stages: the route before the key', 'GET', '/nowhere', NO_KEY, 404, 'errors/resource_not_found'],
  ['HEAD of a route that only lists POST', 'HEAD', '/api/v1/messages', {}, 404, ''],
  ['another method', 'PUT', CHATS, {}, 404, 'errors/resource_not_found'],
  ['an empty parameter', 'GET', '/api/v1/accounts//chats', {}, 404, 'errors/resource_not_found'],
  ['no key', 'GET', CHATS, NO_KEY, 401, 'errors/missing_credentials'],
  ['stages: the key before the account', 'GET', '/api/v1/chats', NO_KEY, 401, 'errors/missing_credentials'],
  ['an unknown key', 'GET', CHATS, { 'x-api-key': 'x' }, 401, 'errors/invalid_credentials'],
  ['two keys', 'GET', CHATS, { 'x-api-key': [TOKEN, TOKEN] }, 401, 'errors/invalid_credentials'],
  ['an expired key', 'GET', CHATS, { 'x-api-key': 'expired' }, 401, 'api/expired_authorization'],
  ['no account', 'GET', '/api/v1/chats', {}, 422, UNPROCESSABLE],
  ['no account, another query', 'GET', '/api/v1/chats?a=acc_1', {}, 422, UNPROCESSABLE],
  ['no account in the header', 'POST', '/api/v1/messages', {}, 422, UNPROCESSABLE],
  ['an empty account', 'GET', '/api/v1/chats?account_id=', {}, 422, UNPROCESSABLE],
  ['the account twice', 'GET', `${CHATS}&account_id=acc_1`, {}, 422, UNPROCESSABLE],
  ['two headers', 'POST', '/api/v1/messages', { 'x-account-id': ['acc_1', 'acc_1'] }, 422, UNPROCESSABLE],
  [
    'an account header that Connection names, so that the upstream would not see it',
    'POST',
    '/api/v1/messages',
    { 'x-account-id': 'acc_1', connection: 'x-account-id' },
    400,
    'errors/malformed_request',
  ],
  ['a broken encoding', 'GET', '/api/v1/chats?account_id=%ff', {}, 422, UNPROCESSABLE],
  ['an unknown account', 'GET', '/api/v1/accounts/x/chats', {}, 404, 'errors/invalid_resource_identifier'],
  ["another's account", 'GET', '/api/v1/accounts/acc_other/chats', {}, 404, 'errors/invalid_resource_identifier'],
  [
    'outside the scope',
    'GET',
    '/api/v1/accounts/acc_2/chats',
    { 'x-api-key': 'scoped' },
    403,
    'errors/resource_access_restricted',
  ],
];

it.each(rows)('%s: %s %s', async (_row, method, path, headers, status, type) => {
  const reply = await gateway.ask(method, path, headers as never);
  if (method === 'HEAD') expect([reply.status, reply.text]).toEqual([status, '']);
  else expectProblem(reply, status, type);
  expect(ratesOf(reply)).toEqual(NO_RATES);
  expect(upstream.seen).toHaveLength(0);
});

describe('an account is found', () => {
  it.each([
    ['GET', `/api/v1/chats?x=1&account%5fid=${encodeURIComponent('a é/?').replace('%20', '+')}&y`, {}],
    ['GET', '/api/v1/accounts/%61cc_2/chats', {}],
    ['POST', '/api/v1/messages', { 'X-Account-Id': Buffer.from('a é/?').toString('latin1') }],
    ['POST', '/api/v1/messages', { 'x-account-id': 'acc_1' }],
    ['GET', CHATS, { 'x-api-key': 'scoped' }],
  ])('%s %s, decoded', async (method, path, headers) => {
    const reply = await gateway.ask(method, path, headers);
    expect(reply.status).toBe(200);
    expect(ratesOf(reply)).toMatchObject({ limit: 1000 });
    expect(upstream.last().url).toBe(path);
  });
});

describe('the head', () => {
  const key = `x-api-key: ${TOKEN}\r\n`;
  it.each([
    ['no Host in HTTP/1.1', `GET /api/v1/open HTTP/1.1\r\n${key}\r\n`],
    ['Host twice', `GET /api/v1/open HTTP/1.1\r\nhost: a\r\nHost: a\r\n${key}\r\n`],
    ['Host twice in HTTP/1.0', `GET /api/v1/open HTTP/1.0\r\nhost: a\r\nHost: a\r\n${key}\r\n`],
    [
      'a coding before chunked',
      `POST /api/v1/open HTTP/1.1\r\nhost: a\r\n${key}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    ],
  ])('%s: 400, the whole error object, then the connection closes', async (_title, bytes) => {
    const connection = await openRaw(gateway.port);
    connection.write(bytes);
    const [reply] = await connection.waitFor(1);
    await connection.closed;
    expectProblem(reply as RawReply, 400, 'errors/malformed_request');
    expect(upstream.seen).toHaveLength(0);
  });

  it('HTTP/1.0 without Host is accepted, and x-forwarded-host is left out', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(`GET /api/v1/open HTTP/1.0\r\n${key}\r\n`);
    await connection.closed;
    expect(connection.received()).toMatch(/^HTTP\/1\.1 200 /);
    expect(upstream.last().headers['x-forwarded-host']).toBeUndefined();
    expect(upstream.last().headers['x-forwarded-proto']).toBe('http');
  });

  it('the transfer coding chunked may be written in any case', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(
      `POST /api/v1/open HTTP/1.1\r\nhost: a\r\n${key}transfer-encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
    );
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply?.status).toBe(200);
    expect(upstream.last().body().toString()).toBe('hi');
  });
});

describe('maxBodyBytes', () => {
  it('a larger Content-Length: 413 before the body is read, and nothing is charged', async () => {
    const path = '/api/v1/chats?account_id=acc_2';
    const connection = await openRaw(gateway.port);
    connection.write(`POST ${path} HTTP/1.1\r\nhost: a\r\nx-api-key: ${TOKEN}\r\ncontent-length: 101\r\n\r\n`);
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expectProblem(reply as RawReply, 413, 'errors/payload_too_large');
    expect(upstream.seen).toHaveLength(0);
    expect(ratesOf(await gateway.ask('POST', path, {}, { body: 'x'.repeat(100) }))).toMatchObject({ remaining: 999 });
    expect(upstream.last().bytes()).toBe(100);
  });
});
