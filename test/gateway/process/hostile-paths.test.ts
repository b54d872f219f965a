/** No spelling of a path avoids a route's limit or the check of the API key. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { configOf, expectProblem, type Gateway, startGateway, TOKEN } from '../../support/gateway.ts';
import { openRaw, rawRequest } from '../../support/raw-http.ts';
import { startUpstream, type Upstream } from '../../support/upstream.ts';

let upstream: Upstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(
    configOf(upstream.url, {
      routes: [
        { route: 'GET /api/v1/chats', account: 'query.account_id' },
        { route: 'GET /api/v1/accounts/{account_id}/chats', account: 'path.account_id' },
        { route: 'GET /api/v1/open/{id}' },
      ],
      limits: { default: { allMethods: ['0/1m'] } },
    }),
  );
});
afterAll(() => gateway.stop());
beforeEach(() => {
  upstream.seen.length = 0;
});

const raw = async (method: string, target: string, headers: Record<string, string> = { 'x-api-key': TOKEN }) => {
  const connection = await openRaw(gateway.port);
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
];

describe('an encoded slash, a backslash or a dot segment: 400, never forwarded', () => {
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

  it('HEAD on a route that does not list it: 404 without a body', async () => {
    for (const path of ['/api/v1/chats?account_id=acc_1', '/api/v1/open/1']) {
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
  });
});
