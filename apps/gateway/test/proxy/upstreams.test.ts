/** Several upstreams: which one a request goes to, and the connections of each. */

import { eventually, send } from 'headgate-testbed/raw-http';
import { startRedis } from 'headgate-testbed/redis-server';
import { answer, held, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createUpstreams, type Upstreams } from '../../src/proxy/upstreams.ts';
import { FORWARD_SETTINGS, passageOf, serveExchanges } from '../support/exchange-server.ts';
import { configOf, expectProblem } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { okay, startRawUpstream } from '../support/raw-upstream.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((clean) => clean()));
});

describe('a request', () => {
  const names = ['main', 'social', 'files'] as const;
  let upstreams: Record<(typeof names)[number], Upstream>;
  beforeAll(async () => {
    const [main, social, files] = await Promise.all(names.map(() => startUpstream()));
    upstreams = { main, social, files } as typeof upstreams;
  });
  beforeEach(() => {
    for (const name of names) {
      upstreams[name].seen.length = 0;
      upstreams[name].behave(answer());
    }
  });

  const start = (rest: object = {}) =>
    startInProcess(
      configOf(upstreams.main.url, {
        upstreams: { social: `${upstreams.social.url}/base`, files: upstreams.files.url },
        providers: { linkedin: { upstream: 'social' } },
        accounts: [
          { id: 'acc_1', application: 'app_1', provider: 'linkedin' },
          { id: 'acc_2', application: 'app_1', provider: 'mock' },
          { id: 'acc_3', application: 'app_1' },
        ],
        routes: [
          { route: 'GET /chats', account: 'query.account_id' },
          { route: 'GET /files/*', account: 'query.account_id', upstream: 'files' },
          { route: 'GET /main', account: 'query.account_id', upstream: 'default' },
          { route: 'GET /open' },
          { route: 'POST /emails', account: 'body.account_id', idempotent: true },
        ],
        ...rest,
      }),
    );
  const seen = () =>
    Object.fromEntries(names.map((name) => [name, upstreams[name].seen.map(({ url }) => url.split('?')[0])]));

  it.each([
    ['of the route, if it names one', '/files/a?account_id=acc_1', { files: ['/files/a'] }],
    ['of the route, also if it is the default one', '/main?account_id=acc_1', { main: ['/main'] }],
    ["else of the account's provider", '/chats?account_id=acc_1', { social: ['/base/chats'] }],
    ['else the default one: another provider', '/chats?account_id=acc_2', { main: ['/chats'] }],
    ['else the default one: no provider', '/chats?account_id=acc_3', { main: ['/chats'] }],
    ['else the default one: no account', '/open', { main: ['/open'] }],
  ])('goes to the upstream %s', async (_title, path, expected) => {
    const gateway = await start();
    expect((await gateway.ask('GET', path)).status).toBe(200);
    expect(seen()).toEqual({ main: [], social: [], files: [], ...expected });
    await gateway.stop();
  });

  it('with the account in its body goes to the upstream of the provider, with its host', async () => {
    const gateway = await start();
    const body = '{"account_id":"acc_1"}';
    const headers = { 'content-type': 'application/json' };
    expect((await gateway.ask('POST', '/emails', headers, { body })).status).toBe(200);
    expect(upstreams.social.last().headers.host).toBe(new URL(upstreams.social.url).host);
    await gateway.stop();
  });

  it('to an upstream that is down or full does not disturb the others', async () => {
    const hold = held();
    upstreams.files.behave(hold.behaviour);
    const gateway = await start({ maxUpstreamConnections: 1 });
    await upstreams.social.close();
    expectProblem(await gateway.ask('GET', '/chats?account_id=acc_1'), 503, 'errors/network_down');
    const slow = gateway.ask('GET', '/files/a?account_id=acc_1');
    await eventually(() => hold.waiting() === 1, 'the request at its upstream');
    const second = gateway.ask('GET', '/files/b?account_id=acc_1');
    await eventually(async () => (await gateway.metrics()).includes('headgate_upstream_waiting 1'), 'one that waits');
    expect((await gateway.ask('GET', '/open')).status).toBe(200);
    expect(await gateway.metrics()).toContain('headgate_upstream_connections_in_use 1');
    hold.release();
    expect([(await slow).status, (await second).status]).toEqual([200, 200]);
    await gateway.stop();
  });

  it('I4, I6: a retry after a change of the config is replayed; that of a released key goes to the new upstream', async () => {
    const redis = await startRedis();
    cleanups.push(() => redis.stop());
    const rest = { store: `redis://127.0.0.1:${redis.port}/0`, storeDeadlineMs: 5_000, providers: {} };
    const gone = await startUpstream();
    const post = (gateway: InProcess, key: string) =>
      gateway.ask(
        'POST',
        '/emails',
        { 'content-type': 'application/json', 'idempotency-key': key },
        { body: '{"account_id":"acc_1"}' },
      );
    const before = await start({ ...rest, upstream: gone.url });
    const original = await post(before, 'k-1');
    expect(original.status).toBe(200);
    await gone.close();
    expectProblem(await post(before, 'k-2'), 503, 'errors/network_down');
    const after = await start(rest);
    const replay = await post(after, 'k-1');
    expect(replay).toMatchObject({ status: 200, text: original.text, headers: { 'idempotency-replayed': 'true' } });
    expect(upstreams.main.seen).toHaveLength(0);
    const retry = await post(after, 'k-2');
    expect(retry.status).toBe(200);
    expect(retry.headers['idempotency-replayed']).toBeUndefined();
    expect(upstreams.main.seen).toHaveLength(1);
    expect(upstreams.main.last().headers['idempotency-key']).toMatch(/^headgate-/);
    await Promise.all([before.stop(), after.stop()]);
  });
});

describe('the connections to a URL', () => {
  /** Forwards each request to the URL in its field `x-url`. */
  async function serve(): Promise<{ upstreams: Upstreams; ask(url: string): ReturnType<typeof send> }> {
    const upstreams = createUpstreams({ idleMs: 60_000, maxConnections: 4, maxPerApplication: 4 });
    cleanups.push(() => upstreams.close());
    const port = await serveExchanges((exchange) => {
      upstreams.forward(exchange.request.headers['x-url'] as string, exchange, passageOf(), FORWARD_SETTINGS);
    });
    return { upstreams, ask: (url) => send(port, { path: '/', headers: { 'x-url': url } }) };
  }

  it('that rules use stay open across reloads', async () => {
    const one = await startRawUpstream((socket) => void socket.write(okay()));
    const { upstreams, ask } = await serve();
    for (let reload = 0; reload < 5; reload++) {
      upstreams.keep([one.url, 'http://127.0.0.1:9']);
      expect((await ask(one.url)).status).toBe(200);
    }
    expect(one.connections).toHaveLength(1);
  });

  it('that no rules use any more close: idle ones at once, the others after their last request', async () => {
    const waiting: (() => void)[] = [];
    const one = await startRawUpstream((socket) => void waiting.push(() => socket.write(okay())));
    const { upstreams, ask } = await serve();
    upstreams.keep([one.url]);
    const running = [ask(one.url), ask(one.url)];
    await eventually(() => waiting.length === 2, 'two requests');
    waiting.shift()?.();
    expect((await running[0])?.status).toBe(200);
    await eventually(() => upstreams.connectionsInUse === 1, 'an idle connection');
    upstreams.keep(['http://127.0.0.1:9']);
    await eventually(() => one.open() === 1, 'the end of the idle connection');
    waiting.shift()?.();
    expect((await running[1])?.status).toBe(200);
    await eventually(() => one.open() === 0, 'the end of the last connection');
    expect(upstreams.connectionsInUse).toBe(0);
  });

  it('of a request with earlier rules are opened again, and close after it', async () => {
    const one = await startRawUpstream((socket) => void socket.write(okay()));
    const { upstreams, ask } = await serve();
    upstreams.keep([]);
    for (let i = 1; i <= 2; i++) {
      expect((await ask(one.url)).status).toBe(200);
      await eventually(() => one.open() === 0, 'the end of its connection');
      expect(one.connections).toHaveLength(i);
    }
    upstreams.keep([one.url]);
    await ask(one.url);
    expect((await ask(one.url)).status).toBe(200);
    expect(one.connections).toHaveLength(3);
  });

  it('are refused after the end of the process began', async () => {
    const one = await startRawUpstream((socket) => void socket.write(okay()));
    const { upstreams, ask } = await serve();
    await upstreams.close();
    expectProblem(await ask(one.url), 503, 'errors/network_down');
    expect(one.connections).toHaveLength(0);
  });
});
