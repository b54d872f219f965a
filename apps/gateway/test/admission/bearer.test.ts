/** `Authorization: Bearer` is an API key if there is no `X-API-KEY`, and is then not forwarded. */

import { openRaw } from 'headgate-testbed/raw-http';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { configOf, expectProblem, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const OPEN = '/api/v1/open';
const CHALLENGE = 'Bearer realm="api"';
let upstream: Upstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startInProcess(
    configOf(upstream.url, {
      keys: [
        { token: TOKEN, application: 'app_1' },
        { token: 'expired', application: 'app_1', expiresAt: '2020-01-01T00:00:00Z' },
      ],
    }),
  );
});
afterAll(() => gateway.stop());
beforeEach(() => {
  upstream.seen.length = 0;
});

const ask = (headers: Record<string, string | undefined>) =>
  gateway.ask('GET', OPEN, { 'x-api-key': undefined, ...headers });

it.each(['Bearer', 'bearer', 'BEARER', 'bEaReR ', 'Bearer  '])(
  'a bearer token is the key, whatever the case of the scheme, and is not forwarded: %j',
  async (scheme) => {
    expect((await ask({ authorization: `${scheme} ${TOKEN}` })).status).toBe(200);
    expect(upstream.last().rawHeaders.join('\n')).not.toContain(TOKEN);
    expect(upstream.last().headers.authorization).toBeUndefined();
  },
);

describe('beside X-API-KEY', () => {
  it('Authorization is not read, and is forwarded untouched', async () => {
    for (const authorization of ['Bearer theirs', `Bearer ${TOKEN}`, 'Basic YTpi', '']) {
      expect((await ask({ 'x-api-key': TOKEN, authorization })).status).toBe(200);
      expect(upstream.last().headers.authorization).toBe(authorization);
    }
  });

  it.each([
    ['', 'errors/missing_credentials'],
    ['unknown', 'errors/invalid_credentials'],
  ])('a good bearer token does not help if X-API-KEY is %j', async (key, type) => {
    expectProblem(await ask({ 'x-api-key': key, authorization: `Bearer ${TOKEN}` }), 401, type);
    expect(upstream.seen).toHaveLength(0);
  });
});

it.each([
  ['no credentials', undefined, 'errors/missing_credentials'],
  ['another scheme', 'Basic YTpi', 'errors/missing_credentials'],
  ['a token without a scheme', TOKEN, 'errors/missing_credentials'],
  ['a scheme without a token', 'Bearer', 'errors/missing_credentials'],
  ['a tab in place of a space', `Bearer\t${TOKEN}`, 'errors/missing_credentials'],
  ['a longer scheme', `Bearers ${TOKEN}`, 'errors/missing_credentials'],
  ['an unknown token', 'Bearer nobody', 'errors/invalid_credentials'],
  ['two tokens', `Bearer ${TOKEN} ${TOKEN}`, 'errors/invalid_credentials'],
  ['a parameter', `Bearer token=${TOKEN}`, 'errors/invalid_credentials'],
  ['a token in quotes', `Bearer "${TOKEN}"`, 'errors/invalid_credentials'],
  ['an expired token', 'Bearer expired', 'api/expired_authorization'],
])('%s: 401 with a challenge', async (_title, authorization, type) => {
  const reply = await ask({ authorization });
  expectProblem(reply, 401, type);
  expect(reply.headers['www-authenticate']).toBe(CHALLENGE);
  expect(upstream.seen).toHaveLength(0);
});

it('two fields Authorization are not a key, whichever of them is good', async () => {
  for (const values of [
    [`Bearer ${TOKEN}`, 'Bearer other'],
    ['Basic YTpi', `Bearer ${TOKEN}`],
    [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`],
  ]) {
    const connection = await openRaw(gateway.port);
    connection.write(
      `GET ${OPEN} HTTP/1.1\r\nhost: a\r\n${values.map((value) => `Authorization: ${value}\r\n`).join('')}\r\n`,
    );
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply?.status).toBe(401);
  }
  expect(upstream.seen).toHaveLength(0);
});

it('a wrong X-API-KEY has the same challenge, and other answers have none', async () => {
  expect((await ask({ 'x-api-key': 'nobody' })).headers['www-authenticate']).toBe(CHALLENGE);
  expect((await gateway.ask('GET', '/nowhere')).headers['www-authenticate']).toBeUndefined();
  expect((await ask({ 'x-api-key': TOKEN })).headers['www-authenticate']).toBeUndefined();
});

it("the upstream's own 401 keeps its challenge", async () => {
  upstream.behave((_seen, response) => void response.writeHead(401, { 'www-authenticate': 'Basic' }).end());
  const reply = await ask({ 'x-api-key': TOKEN });
  expect([reply.status, reply.headers['www-authenticate']]).toEqual([401, 'Basic']);
});

it('Authorization cannot name an account, and cannot be listed in forwardFields', () => {
  const routes = [{ route: 'GET /x', account: 'header.Authorization' }];
  const limits = { unlimited: true };
  expect(() => checkConfig({ routes, limits }, 'test')).toThrow('the header Authorization cannot name an account');
  expect(() => checkConfig({ forwardFields: ['Authorization'] }, 'test')).toThrow(
    'forwardFields[0]: the gateway itself sets or removes Authorization',
  );
});
