/** No spelling of a path avoids a route's limit or the check of the API key. */

import { openRaw, rawRequest } from 'headgate-testbed/raw-http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, type Gateway, startGateway, TOKEN } from '../support/gateway.ts';

const { upstream, gateway } = await gatewayForFile(configOf, {
  routes: [
    { route: 'GET /api/v1/chats', account: 'query.account_id' },
    { route: 'GET /api/v1/accounts/{account_id}/chats', account: 'path.account_id' },
    { route: 'GET /api/v1/open/{id}' },
  ],
  limits: { default: { allMethods: ['0/1m'] } },
});

const KEY: Record<string, string> = { 'x-api-key': TOKEN };
const raw = async (method: string, target: string, headers = KEY, to = gateway) => {
  const connection = await openRaw(to.port);
  connection.write(rawRequest(method, target, headers));
  const [reply] = await connection.waitFor(1);
  connection.destroy();
  if (reply === undefined) throw new Error('No answer.');
  return reply;
};

const refused = [
  '/api/v1/open/a%2Fb',
  '/api/v1/open/a%2fb',
  '/api/v1/open/%2f',
  '/api/v1/open/a%5Cb',
  '/api/v1/open/a%5cb',
  '/api/v1/open/a\\b',
  '\\api\\v1\\open\\1',
  '/api/v1/open/.',
  '/api/v1/open/..',
  '/api/v1/open/%2e',
  '/api/v1/open/%2e%2E',
  '/api/v1/open/.%2e',
  '/api/v1/open/../chats?account_id=acc_1',
  '/api/v1/./chats?account_id=acc_1',
  '/api/v1/open/%2e%2e/chats?account_id=acc_1',
  '/api/v1/open/..%2fchats',
  '/./api/v1/chats?account_id=acc_1',
  '/../api/v1/chats?account_id=acc_1',
  '/api/v1%2Fchats?account_id=acc_1',
  '/nowhere/../api/v1/chats',
  '/api/v1/open/..%00',
  '/api/v1/open/..%09/chats?account_id=acc_1',
  '/api/v1/open/..%C2%AD/chats?account_id=acc_1',
  '/api/v1/open/..%E2%80%8B/chats?account_id=acc_1',
  '/api/v1/open/%EF%BC%8E%EF%BC%8E/chats?account_id=acc_1',
  '/api/v1/open/%252e%252e/chats?account_id=acc_1',
  '/api/v1/open/a%00',
  '/api/v1/open/a%7f',
  '/api/v1/open/a%0d%0ab',
];

describe('an encoded slash, a backslash, a control character or a dot segment: 400, never forwarded', () => {
  it.each(refused)('%s', async (target) => {
    const reply = await raw('GET', target);
    expectProblem(reply, 400, 'errors/malformed_request');
    expect(upstream.seen).toHaveLength(0);
  });
});

const unknown: [method: string, target: string][] = [
  ['GET', '/api/v1/chats/?account_id=acc_1'],
  ['GET', '/API/v1/chats?account_id=acc_1'],
  ['GET', '/api/V1/Chats?account_id=acc_1'],
  ['GET', '//api/v1/chats?account_id=acc_1'],
  ['GET', '/api//v1/chats?account_id=acc_1'],
  ['GET', '/api/v1//chats?account_id=acc_1'],
  ['GET', '/api/v1/chats//?account_id=acc_1'],
  ['GET', '/api/v1/open/'],
  ['GET', '/api/v1/open//'],
  ['GET', '/api/v1/open'],
  ['GET', '/api/v1/open/1/'],
  ['GET', '/api/v1/open/1/2'],
  ['GET', '/api/v1/accounts//chats'],
  ['GET', '/api/v1/chat%73s?account_id=acc_1'],
  ['GET', '/api/v1/chats%20?account_id=acc_1'],
  ['GET', '/api/v1/chats;a=b?account_id=acc_1'],
  ['GET', '/'],
  ['GET', '/healthz/'],
  ['GET', '/metrics'],
  ['GET', '/__proto__'],
  ['GET', '/constructor'],
  ['POST', '/api/v1/chats?account_id=acc_1'],
  ['PUT', '/api/v1/open/1'],
  ['DELETE', '/api/v1/chats?account_id=acc_1'],
  ['OPTIONS', '/api/v1/chats'],
  ['PROPFIND', '/api/v1/open/1'],
];

describe('another spelling or another method: 404, never forwarded', () => {
  it.each(unknown)('%s %s', async (method, target) => {
    const reply = await raw(method, target);
    if (reply.status === 400) expectProblem(reply, 400, 'errors/malformed_request');
    else expectProblem(reply, 404, 'errors/resource_not_found');
    expect(upstream.seen).toHaveLength(0);
  });

  it('HEAD, of which every path here is another one than that of a listed GET: 404 without a body', async () => {
    for (const path of ['/api/v1/chats/?account_id=acc_1', '/api/v1/open/', '/API/v1/open/1']) {
      const reply = await gateway.ask('HEAD', path);
      expect(reply).toMatchObject({ status: 404, text: '' });
      expect(reply.headers['x-request-id']).toEqual(expect.any(String));
    }
    expect(upstream.seen).toHaveLength(0);
  });
});

/** Spellings whose meaning is not specified. For any meaning, key and limit must apply. */
const doubtful = [
  '/api/v1/ch%61ts?account_id=acc_1',
  '/%61pi/v1/chats?account_id=acc_1',
  '/api/v1/chats%3Faccount_id=acc_1',
  '/api/v1/chats#?account_id=acc_1',
  '/api/v1/chats?account_id=acc_1#frag',
  '/api/v1/accounts/acc_1%00/chats',
  '/api/v1/accounts/%252e%252e/chats',
  '/api/v1/accounts/acc_1/chats%09',
  'http://127.0.0.1/api/v1/chats?account_id=acc_1',
  'http://evil.test/api/v1/chats?account_id=acc_1',
  'HTTP://user@evil.test:1/api/v1/accounts/acc_1/chats',
  '//evil.test/api/v1/chats?account_id=acc_1',
  'http://evil.test//api/v1/chats?account_id=acc_1',
  '?account_id=acc_1',
  '*',
  '/api/v1/chats?account_id=acc_1&ACCOUNT_ID=acc_2',
];

/** Without the rows for an unknown method: their targets are valid with GET. */
const misspelt = unknown.filter(([method]) => method === 'GET').map(([, target]) => target);

describe('key and limit apply to every target', () => {
  it.each([...refused, ...misspelt, ...doubtful])('GET %s', async (target) => {
    const limited = await raw('GET', target);
    expect(limited.status).toBeGreaterThanOrEqual(400);
    expect(limited.status).toBeLessThan(500);
    const keyless = await raw('GET', target, {});
    expect(keyless.status).toBeGreaterThanOrEqual(400);
    expect(keyless.status).toBeLessThan(500);
    expect(upstream.seen).toHaveLength(0);
  });

  it('no header changes method or path', async () => {
    const tricks = {
      'x-http-method-override': 'GET',
      'x-method-override': 'GET',
      'x-original-url': '/api/v1/open/1',
      'x-rewrite-url': '/api/v1/open/1',
      'x-api-key': TOKEN,
    };
    expectProblem(await raw('POST', '/api/v1/open/1', tricks), 404, 'errors/resource_not_found');
    expectProblem(await raw('GET', '/nowhere', tricks), 404, 'errors/resource_not_found');
    expect(upstream.seen).toHaveLength(0);
    for (const trick of ['X-Forwarded-Prefix', 'X-Real-IP', 'Forwarded', 'X_API_KEY', 'X-Original-URI']) {
      await raw('GET', '/api/v1/open/1', { ...tricks, [trick]: '/admin' });
      const { rawHeaders } = upstream.last();
      expect(rawHeaders.join('\n')).not.toMatch(/override|-url|\/admin/i);
    }
  });
});

describe('a wildcard beside a limited route', () => {
  let open: Gateway;
  beforeAll(async () => {
    const routes = [{ route: 'GET /api/v1/chats', account: 'query.account_id' }, { route: 'GET /*' }];
    const limits = { default: { allMethods: ['0/1m'] } };
    open = await startGateway(configOf(upstream.url, { routes, limits }));
  });
  afterAll(() => open.stop());

  it.each(refused)('400, never forwarded: %s', async (target) => {
    expectProblem(await raw('GET', target, KEY, open), 400, 'errors/malformed_request');
    expect(upstream.seen).toHaveLength(0);
  });

  it('the limit applies in every encoding; what the wildcard takes arrives as it was sent', async () => {
    for (const path of ['/api/v1/chats', '/api/v1/ch%61ts', '/%61pi/v1/chats'])
      expectProblem(await open.ask('GET', `${path}?account_id=acc_1`), 422, 'api/cost_exceeds_limit');
    expect(upstream.seen).toHaveLength(0);
    for (const path of ['/', '//', '/x//y/', '/a%20b/c?d=/e/../f', '/api/v1/CHATS?account_id=acc_1']) {
      expect((await open.ask('GET', path)).status).toBe(200);
      expect(upstream.last().url).toBe(path);
    }
  });
});

describe('a literal route beside a parameter', () => {
  const routes = [
    { route: 'POST /v1/mail:send', account: 'query.account_id' },
    { route: 'POST /v1/{op}', account: 'query.account_id' },
  ];
  const limits = { default: { routes: { 'POST /v1/mail:send': ['0/1m'] } } };
  const post = (to: Gateway, path: string) => to.ask('POST', `${path}?account_id=acc_1`);

  it('has its limit in every encoding; what passes arrives as it was sent', async () => {
    const limited = await startGateway(configOf(upstream.url, { routes, limits }));
    for (const path of ['/v1/mail:send', '/v1/mail%3Asend', '/v1/mail%3asend', '/v1/%6Dail%3A%73end']) {
      expectProblem(await post(limited, path), 422, 'api/cost_exceeds_limit');
    }
    expect(upstream.seen).toHaveLength(0);
    for (const path of ['/v1/mail%253Asend', '/v1/MAIL%3Asend']) {
      expect((await post(limited, path)).status).toBe(200);
      expect(upstream.last().url).toBe(`${path}?account_id=acc_1`);
    }
    await limited.stop();
  });

  it('strictSiblings refuses other spellings of the literal', async () => {
    const strict = await startGateway(configOf(upstream.url, { routes, limits, strictSiblings: true }));
    for (const path of [
      '/v1/MAIL:send',
      '/v1/mail:send;a=1',
      '/v1/mail%253Asend',
      '/v1/mail:send%20',
      '/v1/mail:send.json',
    ]) {
      expectProblem(await post(strict, path), 404, 'errors/resource_not_found');
    }
    expect((await post(strict, '/v1/mail')).status).toBe(200);
    expect(upstream.seen).toHaveLength(1);
    await strict.stop();
  });
});
