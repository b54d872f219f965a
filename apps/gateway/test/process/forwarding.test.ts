/** What the upstream receives, and what the client gets back. */
import { randomBytes } from 'node:crypto';
import { oneConnection, openRaw, rawRequest, send } from 'headgate-testbed/raw-http';
import { answer } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, startGateway, TOKEN } from '../support/gateway.ts';

const routes = [
  ...['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map((method) => ({ route: `${method} /api/v1/things/{id}` })),
  { route: 'POST /api/v1/things' },
  { route: 'GET /api/v1/chats', account: 'query.account_id' },
];

const { upstream, gateway } = await gatewayForFile((upstream) => configOf(`${upstream}/base`, { routes }));

describe('the request', () => {
  it.each([
    '/api/v1/things/1',
    '/api/v1/things/a%20b?',
    '/api/v1/things/%e2%82%AC?x=1&x=2&&y=%2F%zz&=&z',
    '/api/v1/things/a;b=c,d:e@f!$',
    '/api/v1/things/1?next=../../etc/passwd&url=http://a/b//c%5c',
    '/api/v1/things/%7Euser?q=a+b%2Bc',
    '/api/v1/things/...?a=?b',
  ])('path and query unchanged, after the base path: %s', async (path) => {
    expect((await gateway.ask('GET', path)).status).toBe(200);
    expect(upstream.last().url).toBe(`/base${path}`);
  });

  it('the method unchanged', async () => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      expect((await gateway.ask(method, '/api/v1/things/1')).status).toBe(200);
      expect(upstream.last().method).toBe(method);
    }
  });

  it('HEAD on a route that lists it: the headers, no body', async () => {
    upstream.behave(answer({ headers: { 'content-length': '1234', 'x-own': 'yes' }, body: '' }));
    const reply = await gateway.ask('HEAD', '/api/v1/things/1');
    expect(upstream.last().method).toBe('HEAD');
    expect(reply).toMatchObject({ status: 200, text: '', headers: { 'content-length': '1234', 'x-own': 'yes' } });
  });

  it('the body, byte for byte, of any method', async () => {
    const body = randomBytes(70_000);
    for (const [method, path] of [
      ['POST', '/api/v1/things'],
      ['PUT', '/api/v1/things/1'],
      ['DELETE', '/api/v1/things/1'],
    ] as const) {
      await gateway.ask(
        method,
        path,
        { 'content-type': 'application/octet-stream', 'content-encoding': 'gzip' },
        { body },
      );
      expect(upstream.last().body().equals(body)).toBe(true);
      expect(upstream.last().headers).toMatchObject({
        'content-type': 'application/octet-stream',
        'content-encoding': 'gzip',
      });
      expect(upstream.last().headers['content-length']).toBe('70000');
    }
  });

  it('a chunked body too', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', '/api/v1/things', { 'x-api-key': TOKEN, 'transfer-encoding': 'chunked' }));
    connection.write('5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\n\r\n');
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply?.status).toBe(200);
    expect(upstream.last().body().toString()).toBe('hello world');
  });

  it('a request without a body gets none', async () => {
    await gateway.ask('GET', '/api/v1/things/1');
    expect(upstream.last().headers['transfer-encoding']).toBeUndefined();
    expect(upstream.last().headers['content-length'] ?? '0').toBe('0');
    expect(await upstream.last().whole).toBe(true);
  });

  it('end-to-end headers are forwarded; several of one name stay several', async () => {
    const headers = {
      Accept: 'a/b',
      Cookie: 'a=1; b=2',
      Authorization: 'Bearer theirs',
      'X-Many': ['1', '2'],
      'X-Empty': '',
    };
    await gateway.ask('GET', '/api/v1/things/1', headers);
    const got = upstream.last().headers;
    expect(got).toMatchObject({ accept: 'a/b', cookie: 'a=1; b=2', authorization: 'Bearer theirs', 'x-many': '1, 2' });
    expect(got['x-empty']).toBe('');
  });

  it('X-API-KEY and hop-by-hop headers are not forwarded, nor are those that Connection names', async () => {
    const hops = {
      Connection: 'keep-alive, X-Private, te',
      'X-Private': 'secret',
      'Keep-Alive': 'timeout=5',
      TE: 'trailers',
      'Proxy-Connection': 'keep-alive',
      'Proxy-Authorization': 'Basic YTpi',
      'X-Public': 'kept',
    };
    await gateway.ask('GET', '/api/v1/things/1', hops);
    const { headers } = upstream.last();
    for (const name of [
      'x-api-key',
      'x-private',
      'keep-alive',
      'te',
      'proxy-connection',
      'proxy-authorization',
      'upgrade',
    ]) {
      expect({ name, value: headers[name] }).toEqual({ name, value: undefined });
    }
    expect(headers['x-public']).toBe('kept');
    expect(upstream.last().rawHeaders.join('\n')).not.toContain(TOKEN);
  });

  it('a header that servers obey is forwarded if forwardFields lists it', async () => {
    const listed = await startGateway(configOf(upstream.url, { routes, forwardFields: ['X-Real-IP', 'my_field'] }));
    const headers = { 'x-real-ip': '203.0.113.9', my_field: '1', forwarded: 'for=203.0.113.9', other_field: '2' };
    await listed.ask('GET', '/api/v1/things/1', headers);
    expect(upstream.last().headers).toMatchObject({ 'x-real-ip': '203.0.113.9', my_field: '1' });
    expect(upstream.last().rawHeaders).not.toContain('other_field');
    expect(upstream.last().headers.forwarded).toBeUndefined();
    await listed.stop();
  });

  it('Connection cannot remove headers that the gateway adds or checks', async () => {
    const connection = 'x-request-id, x-forwarded-for, host, content-length';
    const reply = await gateway.ask('PUT', '/api/v1/things/1', { connection }, { body: 'four' });
    expect(reply.status).toBe(200);
    const { headers, body } = { headers: upstream.last().headers, body: upstream.last().body().toString() };
    expect(body).toBe('four');
    expect(headers['x-request-id']).toBe(reply.headers['x-request-id']);
    expect(headers.host).toBe(`127.0.0.1:${upstream.port}`);
  });

  it('an Upgrade is not forwarded', async () => {
    const reply = await gateway
      .ask('GET', '/api/v1/open', { connection: 'upgrade', upgrade: 'websocket' })
      .catch(() => undefined);
    if (upstream.seen.length > 0) expect(upstream.last().headers.upgrade).toBeUndefined();
    if (reply !== undefined) expect(reply.status).not.toBe(101);
  });

  it("host is the upstream's; x-forwarded-for, -host and -proto are added", async () => {
    await gateway.ask('GET', '/api/v1/things/1', { host: 'api.example.test' });
    const { headers } = upstream.last();
    expect(headers.host).toBe(`127.0.0.1:${upstream.port}`);
    expect(headers['x-forwarded-for']).toMatch(/^(::ffff:)?127\.0\.0\.1$/);
    expect(headers).toMatchObject({ 'x-forwarded-host': 'api.example.test', 'x-forwarded-proto': 'http' });
  });

  it('x-forwarded-* are appended to what the client sent', async () => {
    const theirs = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-host': 'a.test', 'x-forwarded-proto': 'https' };
    await gateway.ask('GET', '/api/v1/things/1', { host: 'b.test', ...theirs });
    const { headers } = upstream.last();
    expect(headers['x-forwarded-for']).toMatch(/^203\.0\.113\.9, ?(::ffff:)?127\.0\.0\.1$/);
    expect(headers['x-forwarded-host']).toMatch(/^a\.test, ?b\.test$/);
    expect(headers['x-forwarded-proto']).toMatch(/^https, ?http$/);
  });

  it('Expect: 100-continue is answered, and the body arrives', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(
      rawRequest('POST', '/api/v1/things', { 'x-api-key': TOKEN, expect: '100-continue', 'content-length': '4' }),
    );
    await expect.poll(() => connection.received()).toContain(' 100 ');
    connection.write('body');
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply?.status).toBe(200);
    expect(upstream.last().body().toString()).toBe('body');
  });
});

describe('x-request-id', () => {
  it("is the gateway's own, in the answer and at the upstream; the client's is replaced", async () => {
    const reply = await gateway.ask('GET', '/api/v1/things/1', { 'x-request-id': 'client-chose-this' });
    expect(reply.headers['x-request-id']).toMatch(/^[\x21-\x7e]{8,}$/);
    expect(reply.headers['x-request-id']).not.toBe('client-chose-this');
    expect(upstream.last().headers['x-request-id']).toBe(reply.headers['x-request-id']);
  });

  it("replaces the upstream's own", async () => {
    upstream.behave(answer({ headers: { 'x-request-id': 'upstream-chose-this' } }));
    const reply = await gateway.ask('GET', '/api/v1/things/1');
    expect(reply.headers['x-request-id']).toBe(upstream.last().headers['x-request-id']);
  });

  it('is different for every request, and the same as in the error', async () => {
    const ids = new Set<unknown>();
    const agent = oneConnection();
    for (let i = 0; i < 5; i += 1) {
      const reply = await send(gateway.port, { path: '/nowhere', agent, headers: { 'x-request-id': 'mine' } });
      ids.add(expectProblem(reply, 404, 'errors/resource_not_found').req_id);
    }
    agent.destroy();
    expect(ids.size).toBe(5);
    expect(ids.has('mine')).toBe(false);
  });
});

describe('the answer', () => {
  it('hop-by-hop headers are removed, the others are passed on; several Set-Cookie stay several', async () => {
    const headers = {
      connection: 'x-hop',
      'x-hop': 'private',
      'keep-alive': 'timeout=99',
      'proxy-authenticate': 'Basic',
      'set-cookie': ['a=1', 'b=2'],
      date: 'Sat, 01 Jan 2000 00:00:00 GMT',
      etag: 'W/"1"',
      'x-latin': 'caf\u00e9',
      server: 'theirs',
    };
    upstream.behave(answer({ headers }));
    const reply = await gateway.ask('GET', '/api/v1/things/1');
    for (const name of ['x-hop', 'proxy-authenticate']) expect(reply.headers[name]).toBeUndefined();
    expect(reply.headers['keep-alive']).not.toBe('timeout=99');
    expect(reply.headers).toMatchObject({
      'set-cookie': ['a=1', 'b=2'],
      etag: 'W/"1"',
      'x-latin': 'caf\u00e9',
      server: 'theirs',
    });
    expect(reply.headers.date).toBe('Sat, 01 Jan 2000 00:00:00 GMT');
  });

  it('a compressed body is passed on unchanged', async () => {
    const body = randomBytes(5_000);
    upstream.behave(answer({ headers: { 'content-encoding': 'gzip' }, body }));
    const reply = await gateway.ask('GET', '/api/v1/things/1', { 'accept-encoding': 'gzip' });
    expect(reply.headers['content-encoding']).toBe('gzip');
    expect(reply.body.equals(body)).toBe(true);
  });

  it('a redirect is not followed', async () => {
    upstream.behave(answer({ status: 302, headers: { location: '/elsewhere' }, body: '' }));
    const reply = await gateway.ask('GET', '/api/v1/things/1');
    expect(reply).toMatchObject({ status: 302, headers: { location: '/elsewhere' } });
    expect(upstream.seen).toHaveLength(1);
  });
});
