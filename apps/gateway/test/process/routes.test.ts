/** Wildcards, and HEAD of a listed GET: which route a request has, what it counts on, and what the upstream gets. */

import { eventually, send } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem } from '../support/gateway.ts';

const { upstream, gateway } = await gatewayForFile(configOf, {
  routes: [
    { route: 'GET /files/*', account: 'query.account_id' },
    { route: 'GET /files/new', account: 'query.account_id' },
    { route: 'GET /accounts/{account_id}/*', account: 'path.account_id' },
    { route: 'GET /chats', account: 'query.account_id' },
    { route: 'GET /free' },
    { route: 'HEAD /free' },
    { route: 'POST /emails', account: 'query.account_id' },
  ],
  limits: { default: { routes: { 'GET /files/*': ['3/1h'], 'GET /chats': ['2/1h'] } } },
});

const metrics = async () => (await send(gateway.adminPort, { path: '/metrics' })).text;
const logged = (route: string, method: string) => () =>
  gateway.log().find((line) => line.route === route && line.method === method && line.status === 200);

describe('a wildcard', () => {
  it('has one count for all of its paths, and another than a more specific route', async () => {
    const remaining = async (path: string) =>
      (await gateway.ask('GET', `${path}?account_id=acc_1`)).headers['x-ratelimit-remaining'];
    expect(await remaining('/files/a')).toBe('2');
    expect(await remaining('/files/a/b/c')).toBe('1');
    expect(await remaining('/files/')).toBe('0');
    expectProblem(await gateway.ask('GET', '/files/other?account_id=acc_1'), 429, 'api/too_many_requests');
    expect((await gateway.ask('GET', '/files/new?account_id=acc_1')).status).toBe(200);
    expect(upstream.seen.map(({ url }) => url.replace(/\?.*/, ''))).toEqual([
      '/files/a',
      '/files/a/b/c',
      '/files/',
      '/files/new',
    ]);
  });

  it('has the name of the config in metrics and log, and no path does', async () => {
    await gateway.ask('GET', '/files/secret-name/x?account_id=acc_2');
    await eventually(async () => /^headgate_requests_total\{.*"GET \/files\/\*"/m.test(await metrics()), 'the metric');
    await eventually(logged('GET /files/*', 'GET'), 'the log line');
    expect(`${await metrics()}${gateway.output()}`).not.toContain('secret-name');
  });

  it('can have the account in a parameter before it', async () => {
    expect((await gateway.ask('GET', '/accounts/acc_1/a/b')).status).toBe(200);
    expectProblem(await gateway.ask('GET', '/accounts/acc_x/a/b'), 404, 'errors/invalid_resource_identifier');
  });

  it('needs a key, and applies only to its method', async () => {
    const keyless = await gateway.ask('GET', '/files/a', { 'x-api-key': undefined });
    expectProblem(keyless, 401, 'errors/missing_credentials');
    expectProblem(await gateway.ask('POST', '/files/a'), 404, 'errors/resource_not_found');
    expect(upstream.seen).toHaveLength(0);
  });
});

describe('HEAD of a listed GET', () => {
  it('is forwarded as HEAD, and counts on the route of GET', async () => {
    upstream.behave((_seen, response) => {
      response.writeHead(200, { 'content-length': '11', etag: '"1"' });
      response.end('hello world');
    });
    const head = await gateway.ask('HEAD', '/chats?account_id=acc_1');
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(head.headers).toMatchObject({ 'content-length': '11', etag: '"1"', 'x-ratelimit-remaining': '1' });
    expect(upstream.last().method).toBe('HEAD');
    expect((await gateway.ask('GET', '/chats?account_id=acc_1')).headers['x-ratelimit-remaining']).toBe('0');
    expect((await gateway.ask('HEAD', '/chats?account_id=acc_1')).status).toBe(429);
    expect(upstream.seen).toHaveLength(2);
    await eventually(logged('GET /chats', 'HEAD'), 'the log line');
  });

  it('needs the key and the account of the route', async () => {
    expect((await gateway.ask('HEAD', '/chats?account_id=acc_1', { 'x-api-key': undefined })).status).toBe(401);
    expect((await gateway.ask('HEAD', '/chats')).status).toBe(422);
    expect((await gateway.ask('HEAD', '/emails?account_id=acc_1')).status).toBe(404);
    expect(upstream.seen).toHaveLength(0);
  });

  it('has a route of its own, if the config lists one', async () => {
    expect((await gateway.ask('HEAD', '/free')).status).toBe(200);
    await eventually(logged('HEAD /free', 'HEAD'), 'the log line');
  });
});
