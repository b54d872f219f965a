/** A whole gateway in this process: config, rate-limit headers, log, and draining. */

import { listen } from 'headgate-testbed/listen';
import { eventually, openRaw, rawRequest, send } from 'headgate-testbed/raw-http';
import { answer, held, startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../src/config/config.ts';
import { startGateway } from '../src/gateway.ts';
import { ListenError } from '../src/server/listen.ts';
import { configOf, expectProblem, NO_RATES, ratesOf, TOKEN } from './support/gateway.ts';
import { openLog, startInProcess } from './support/in-process.ts';

const CHATS = '/api/v1/chats?account_id=acc_1';

describe('a gateway', () => {
  it('S6, S8: shows the window on forwarded requests, and answers 429 itself once the window is full', async () => {
    const upstream = await startUpstream();
    const gateway = await startInProcess(configOf(upstream.url, { limits: { default: { allMethods: ['2/1m'] } } }));
    expect(ratesOf(await gateway.ask('GET', CHATS))).toEqual({
      limit: 2,
      remaining: 1,
      reset: 60,
      retryAfter: undefined,
    });
    await gateway.ask('GET', CHATS);
    const rejected = await gateway.ask('GET', CHATS);
    expectProblem(rejected, 429, 'api/too_many_requests');
    const { reset, retryAfter } = ratesOf(rejected);
    expect(retryAfter).toBe(reset);
    expect(upstream.seen).toHaveLength(2);
    expect((await gateway.ask('GET', '/api/v1/chats?account_id=acc_2')).status).toBe(200);
    const decisions = await gateway.metrics();
    expect(decisions).toContain(
      'headgate_decisions_total{route="GET /api/v1/chats",limit="all-methods",outcome="rejected"} 1',
    );
    expect(decisions).toContain('headgate_upstream_seconds_count{route="GET /api/v1/chats"} 3');
    expect(decisions).toMatch(/^headgate_memory_store_keys 2$/m);
  });

  it('config: `headers` chooses the fields, and the provider layer wins over the default', async () => {
    const upstream = await startUpstream();
    const limits = { default: { allMethods: ['9/1m'] }, providers: { mock: { allMethods: ['5/1m'] } } };
    const ietf = await startInProcess(configOf(upstream.url, { headers: 'ietf', limits }));
    const { headers } = await ietf.ask('GET', CHATS);
    expect(headers['ratelimit-policy']).toBe('"all-methods-1m";q=5;w=60');
    expect(headers['x-ratelimit-limit']).toBeUndefined();
  });

  it('config: the plan of an account selects limits; the provider layer wins over it', async () => {
    const upstream = await startUpstream();
    const accounts = [
      { id: 'acc_1', application: 'app_1', plan: 'pro' },
      { id: 'acc_2', application: 'app_1', plan: 'pro', provider: 'mock' },
      { id: 'acc_3', application: 'app_1' },
    ];
    const limits = {
      default: { allMethods: ['3/1m'] },
      plans: { pro: { allMethods: ['9/1m'] } },
      providers: { mock: { allMethods: ['5/1m'] } },
    };
    const gateway = await startInProcess(configOf(upstream.url, { accounts, limits }));
    const limitOf = async (account: string) =>
      ratesOf(await gateway.ask('GET', `/api/v1/chats?account_id=${account}`)).limit;
    expect([await limitOf('acc_1'), await limitOf('acc_2'), await limitOf('acc_3')]).toEqual([9, 5, 3]);
  });

  it('logs once per route that it ignores an idempotency key, unless the config says so', async () => {
    const upstream = await startUpstream();
    const routes = [{ route: 'POST /a' }, { route: 'POST /b', idempotent: false }, { route: 'POST /c' }];
    const gateway = await startInProcess(configOf(upstream.url, { routes, limits: { unlimited: true } }));
    for (const path of ['/a', '/a', '/b', '/c']) {
      expect((await gateway.ask('POST', path)).status).toBe(200);
      expect((await gateway.ask('POST', path, { 'idempotency-key': 'k' })).status).toBe(200);
    }
    const warned = () =>
      gateway.lines().flatMap(({ msg, route }) => (/^a request has an Idempotency/.test(String(msg)) ? [route] : []));
    await eventually(() => warned().includes('POST /c'), 'the warnings');
    expect(warned()).toEqual(['POST /a', 'POST /c']);
  });

  it("on an unlimited route the upstream's rate-limit headers are passed on", async () => {
    const upstream = await startUpstream(answer({ headers: { 'x-ratelimit-limit': '7', 'retry-after': '3' } }));
    const gateway = await startInProcess(configOf(upstream.url));
    expect(ratesOf(await gateway.ask('GET', '/api/v1/open'))).toMatchObject({ limit: 7, retryAfter: 3 });
  });

  it('log: one line per request, with its req_id and the decision, and without secrets', async () => {
    const upstream = await startUpstream();
    const gateway = await startInProcess(configOf(upstream.url, { limits: { default: { allMethods: ['1/1m'] } } }));
    const ids: unknown[] = [];
    for (const path of [CHATS, CHATS, '/api/v1/open', '/nowhere?secret=1', '/healthz']) {
      ids.push((await gateway.ask('GET', path)).headers['x-request-id']);
    }
    await eventually(() => gateway.lines().length === 4, 'four lines');
    const told = gateway.lines().map(({ req_id, route, status, decision }) => [req_id, route, status, decision]);
    expect(told).toEqual([
      [ids[0], 'GET /api/v1/chats', 200, 'accepted'],
      [ids[1], 'GET /api/v1/chats', 429, 'rejected'],
      [ids[2], 'GET /api/v1/open', 200, 'unlimited'],
      [ids[3], null, 404, 'refused'],
    ]);
    expect(JSON.stringify(gateway.lines())).not.toMatch(new RegExp(`${TOKEN}|secret|acc_1`));
    expect(await gateway.metrics()).toContain('headgate_requests_total{route="GET /healthz",status="200"} 1');
  });

  it('config: `maxRunMs` bounds the claim of a request that hangs, and no output has the `secret`', async () => {
    const hold = held(answer());
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startInProcess(
      configOf(upstream.url, {
        routes: [{ route: 'POST /api/v1/open', idempotent: { leaseMs: 100, maxRunMs: 50 } }],
        idempotency: { waitMs: 0, secret: 'hush-hush' },
      }),
    );
    const ask = () => gateway.ask('POST', '/api/v1/open', { 'idempotency-key': 'key-1' }, { body: 'x' });
    const original = ask();
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    expect((await ask()).headers['retry-after']).toBeDefined();
    // Once the claim has expired its request is an orphan, and there is nothing to wait for.
    await eventually(async () => (await ask()).headers['retry-after'] === undefined, 'the orphan');
    expectProblem(await ask(), 409, 'errors/conflict');
    hold.release();
    expect((await original).status).toBe(200);
    await gateway.stop();
    expect(upstream.seen).toHaveLength(1);
    expect(JSON.stringify(gateway.lines()) + (await original).text).not.toContain('hush');
  });

  it('config: without `admin` no admin listener starts', async () => {
    const gateway = await startInProcess({ ...configOf('http://127.0.0.1:1'), admin: undefined });
    expect(gateway.gateway.adminAddress).toBeUndefined();
    expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
  });

  it.each(['listen', 'admin'])('a port of `%s` in use: ListenError, and nothing is left open', async (section) => {
    const taken = await listen((_, response) => void response.end());
    const free = await listen(() => {});
    await free.close();
    const other = section === 'listen' ? 'admin' : 'listen';
    const config = { [section]: { port: taken.port }, [other]: { port: free.port } };
    const failed = startGateway(checkConfig(config, 'test'), openLog().log);
    await expect(failed).rejects.toThrow(ListenError);
    await expect(failed).rejects.toThrow(/in use \(EADDRINUSE\): choose another with --(admin-)?port/);
    await expect(send(free.port, { path: '/' })).rejects.toThrow('ECONNREFUSED');
    await taken.close();
  });
});

describe('draining', () => {
  it('running requests finish, their connections close, and new requests are refused', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startInProcess(configOf(upstream.url));
    const kept = await openRaw(gateway.port);
    kept.write(rawRequest('GET', CHATS, { 'x-api-key': TOKEN }));
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    const stopped = gateway.stop();
    await expect(send(gateway.port, { path: '/healthz' })).rejects.toThrow('ECONNREFUSED');
    hold.release();
    expect(await stopped).toBe(0);
    await kept.closed;
    expect(kept.replies()).toMatchObject([{ status: 200, text: '{"ok":true}' }]);
  });

  it('/healthz answers 503 on a connection that was open before', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startInProcess(configOf(upstream.url));
    const running = gateway.ask('GET', '/api/v1/open');
    const half = await openRaw(gateway.port);
    half.write('GET /healthz?now HTTP/1.1\r\n');
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    const stopped = gateway.stop();
    half.write('host: a\r\n\r\n');
    await half.closed;
    expect(half.replies()).toMatchObject([{ status: 503, text: '{"status":"draining"}' }]);
    hold.release();
    expect((await running).status).toBe(200);
    expect(await stopped).toBe(0);
  });

  it('running requests finish, pipelined ones too', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startInProcess(configOf(upstream.url, { drainMs: 500 }));
    const kept = await openRaw(gateway.port);
    kept.write(rawRequest('GET', '/api/v1/open', { 'x-api-key': TOKEN }).repeat(2));
    await eventually(() => hold.waiting() === 2, 'both at the upstream');
    const stopped = gateway.stop();
    hold.release();
    expect(await stopped).toBe(0);
    await kept.closed;
    expect(kept.replies().map(({ status }) => status)).toEqual([200, 200]);
  });

  it('pipelined requests of a client that has gone do not delay the shutdown', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startInProcess(configOf(upstream.url, { drainMs: 500 }));
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', '/api/v1/open', { 'x-api-key': TOKEN }).repeat(2));
    await eventually(() => hold.waiting() === 2, 'both at the upstream');
    connection.destroy();
    await eventually(() => gateway.lines().length >= 1, 'the line of the first');
    hold.release();
    expect(await gateway.stop()).toBe(0);
    await eventually(() => gateway.lines().length === 2, 'the line of the second', 500);
  });

  it('a request that arrives while the gateway drains gets the whole 503, and its connection closes', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startInProcess(configOf(upstream.url));
    const running = gateway.ask('GET', '/api/v1/open');
    const half = await openRaw(gateway.port);
    half.write('GET /api/v1/open HTTP/1.1\r\nhost: a\r\n');
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    const stopped = gateway.stop();
    half.write(`x-api-key: ${TOKEN}\r\n\r\n`);
    const [reply] = await half.waitFor(1);
    await half.closed;
    const refused = reply as { status: number; headers: Record<string, string>; text: string };
    expectProblem(refused, 503, 'errors/service_unavailable');
    expect(ratesOf(refused)).toEqual({ ...NO_RATES, retryAfter: 1 });
    expect(upstream.seen).toHaveLength(1);
    hold.release();
    expect((await running).status).toBe(200);
    expect(await stopped).toBe(0);
  });

  it('requests that hang are cut off after drainMs, and counted', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startInProcess(configOf(upstream.url, { drainMs: 60 }));
    const hanging = Promise.allSettled([gateway.ask('GET', CHATS), gateway.ask('GET', '/api/v1/open')]);
    await eventually(() => hold.waiting() === 2, 'both at the upstream');
    expect(await gateway.stop()).toBe(2);
    expect((await hanging).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await eventually(() => gateway.lines().length === 2, 'their lines in the log');
    for (const line of gateway.lines())
      expect(line).toMatchObject({
        route: expect.any(String),
        decision: expect.stringMatching(/^(accepted|unlimited)$/),
      });
    hold.release();
  });
});
