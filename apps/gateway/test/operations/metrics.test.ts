/** Metrics by route, never by account, and the operator's listener. */

import type { Decision } from 'headgate';
import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import type { LimitStore } from 'headgate/stores';
import { openRaw, send } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { createAdminServer } from '../../src/admin/admin-server.ts';
import { createHealth } from '../../src/operations/health.ts';
import { createMetrics } from '../../src/operations/metrics.ts';
import { expectProblem } from '../support/gateway.ts';

const create = () => createMetrics([{ type: 'gauge', name: 'store_gauge', help: 'A gauge', value: () => 7 }]);

/** The lines of one metric, without its name. */
async function samplesOf(metrics: ReturnType<typeof create>, name: string): Promise<string[]> {
  const { text } = await metrics.render();
  return text.split('\n').flatMap((line) => (line.startsWith(`headgate_${name}`) ? [line.slice(9 + name.length)] : []));
}

const limiter = createLimiter({
  store: createMemoryStore(),
  limits: ({ route }) => (route === 'GET /free' ? { unlimited: true } : { allMethods: ['1/1m'] }),
});
const decide = (route: string) => limiter.consumeSync({ account: 'acc_secret', route });

describe('metrics', () => {
  it('count decisions by route, shown limit and outcome, without accounts', async () => {
    const metrics = create();
    const degraded = { route: 'GET /a', shown: undefined, accepted: true, degraded: true } as Decision;
    await limiter.block({ account: 'acc_blocked' }, { forMs: 60_000 });
    const blocked = limiter.consumeSync({ account: 'acc_blocked', route: 'GET /a' });
    const decided = [decide('GET /a'), decide('GET /a'), decide('GET /a'), decide('GET /free'), degraded, blocked];
    for (const decision of decided) metrics.onEvent({ type: 'decision', requestId: 'id', decision });
    expect(await samplesOf(metrics, 'decisions_total')).toEqual([
      '{route="GET /a",limit="all-methods",outcome="accepted"} 1',
      '{route="GET /a",limit="all-methods",outcome="rejected"} 2',
      '{route="GET /a",limit="none",outcome="degraded"} 1',
      '{route="GET /a",limit="block",outcome="rejected"} 1',
      '{route="GET /free",limit="none",outcome="accepted"} 1',
    ]);
    expect((await metrics.render()).text).not.toContain('acc_secret');
  });

  it("S13, S16: count refunds that had an effect, the provider's own 429, and failures", async () => {
    const metrics = create();
    const decision = decide('GET /b');
    metrics.onEvent({ type: 'refund', requestId: 'id', decision, refunded: true });
    metrics.onEvent({ type: 'refund', requestId: 'id', decision, refunded: false });
    metrics.onEvent({ type: 'provider_rejected', requestId: 'id', decision });
    metrics.onEvent({ type: 'provider_rejected', requestId: 'id', decision: undefined });
    metrics.onEvent({ type: 'failure', requestId: 'id', stage: 'limits', error: new Error('secret') });
    metrics.onEvent({ type: 'skipped', requestId: 'id', reason: 'not_limited' });
    expect(await samplesOf(metrics, 'refunds_total')).toEqual(['{route="GET /b"} 1']);
    expect(await samplesOf(metrics, 'provider_rejections_total')).toEqual([
      '{route="GET /b"} 1',
      '{route="unlimited"} 1',
    ]);
    expect(await samplesOf(metrics, 'failures_total')).toEqual(['{stage="limits"} 1']);
  });

  it('begin the series of alerts at 0, so that the first event of each is an increase', async () => {
    const metrics = create();
    metrics.begin(['GET /a'], ['api.test:443']);
    expect(await samplesOf(metrics, 'provider_rejections_total')).toEqual(['{route="GET /a"} 0']);
    expect(await samplesOf(metrics, 'failures_total')).toContain('{stage="limits"} 0');
    const errors = await samplesOf(metrics, 'upstream_errors_total');
    expect(errors).toHaveLength(8);
    expect(errors).toContain('{upstream="api.test:443",cause="refused"} 0');
    metrics.onUpstreamFailure('api.test:443', 'refused');
    metrics.begin(['GET /a'], ['api.test:443']);
    expect(await samplesOf(metrics, 'upstream_errors_total')).toContain('{upstream="api.test:443",cause="refused"} 1');
  });

  it('count requests by route and status, time the upstream, and read gauges when they are scraped', async () => {
    const metrics = create();
    metrics.onRequest('GET /a', 200);
    metrics.onRequest(undefined, 404);
    metrics.onUpstream('GET /a', 0.2);
    expect(await samplesOf(metrics, 'requests_total')).toEqual([
      '{route="GET /a",status="200"} 1',
      '{route="none",status="404"} 1',
    ]);
    expect(await samplesOf(metrics, 'upstream_seconds_sum')).toEqual(['{route="GET /a"} 0.2']);
    expect(await samplesOf(metrics, 'store_gauge')).toEqual([' 7']);
  });

  it('have the version of headgate', async () => {
    expect(await samplesOf(create(), 'build_info')).toEqual(['{version="0.0.0-source"} 1']);
  });

  it('count failures of an upstream by host and port, and by cause', async () => {
    const metrics = create();
    metrics.onUpstreamFailure('10.0.0.1:80', 'dns');
    metrics.onUpstreamFailure('10.0.0.1:80', 'dns');
    metrics.onUpstreamFailure('[::1]:443', 'tls');
    expect(await samplesOf(metrics, 'upstream_errors_total')).toEqual([
      '{upstream="10.0.0.1:80",cause="dns"} 2',
      '{upstream="[::1]:443",cause="tls"} 1',
    ]);
  });

  it('count a status without a name by its class, so that an upstream cannot make a series of each number', async () => {
    const metrics = create();
    for (let status = 200; status < 1_000; status++) metrics.onRequest('GET /a', status);
    const labels = (await samplesOf(metrics, 'requests_total')).map((line) => /status="(\w+)"/.exec(line)?.[1] ?? '');
    expect(labels).toEqual(expect.arrayContaining(['200', '404', '418', '499', '503', '2xx', '4xx', '5xx', 'other']));
    expect(labels).not.toContain('299');
    expect(labels.length).toBeLessThan(80);
  });

  it('time every call of a store, whether it returns, resolves or rejects, and pass its result on', async () => {
    const metrics = create();
    let closed = 0;
    const store = {
      synchronous: false,
      consume: () => 'decision',
      peek: async () => 'windows',
      settle: () => Promise.reject(new Error('away')),
      reset: async () => undefined,
      close: () => {
        closed += 1;
      },
    } as unknown as LimitStore;
    const measured = metrics.measured(store);
    const plan = limiter.windowSet({ account: 'a', route: 'GET /a' });
    expect(measured.synchronous).toBe(false);
    expect(measured.consume('a', 'r', plan, 1)).toBe('decision');
    expect(await measured.peek('a', 'r', plan)).toBe('windows');
    await expect(measured.settle(decide('GET /c'), 0)).rejects.toThrow('away');
    await measured.reset({});
    await measured.close?.();
    expect(closed).toBe(1);
    expect(await samplesOf(metrics, 'store_seconds_count')).toEqual([
      '{operation="consume"} 1',
      '{operation="peek"} 1',
      '{operation="settle"} 1',
      '{operation="reset"} 1',
    ]);
    expect(metrics.measured({ ...store, close: undefined } as unknown as LimitStore).close?.()).toBeUndefined();
  });
});

describe('the admin listener', () => {
  async function open(metrics = create()) {
    const health = createHealth(async () => 'degraded');
    const server = createAdminServer({ metrics, health });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    return {
      port,
      health,
      close: () => {
        server.close();
        server.closeAllConnections();
      },
    };
  }

  it('answers GET /metrics in the text format of Prometheus, with no-store', async () => {
    const { port, close } = await open();
    const reply = await send(port, { path: '/metrics?x=1' });
    expect(reply).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } });
    expect(reply.headers['content-type']).toMatch(/^text\/plain; version=/);
    expect(reply.text).toContain('# TYPE headgate_decisions_total counter');
    close();
  });

  it.each([
    ['POST', '/metrics'],
    ['GET', '/'],
    ['GET', '/metrics/'],
    ['POST', '/healthz'],
    ['GET', '/livez/'],
  ])('%s %s: 404, the error object', async (method, path) => {
    const { port, close } = await open();
    const reply = await send(port, { method, path, body: method === 'POST' ? 'x' : '' });
    expect(reply.status).toBe(404);
    expect(JSON.parse(reply.text)).toMatchObject({ status: 404, type: 'errors/resource_not_found' });
    close();
  });

  it('has the three health checks: /healthz and /readyz of the store, and 503 while it drains; /livez is always ok', async () => {
    const { port, health, close } = await open();
    const ask = async (method: string) => {
      const replies = await Promise.all(
        ['/healthz', '/readyz?now', '/livez'].map((path) => send(port, { method, path })),
      );
      return replies.map(({ status, text }) => `${status} ${text}`);
    };
    expect(await ask('GET')).toEqual(['200 {"status":"degraded"}', '200 {"status":"degraded"}', '200 {"status":"ok"}']);
    expect(await ask('HEAD')).toEqual(['200 ', '200 ', '200 ']);
    health.drain();
    const draining = '503 {"status":"draining"}';
    expect(await ask('GET')).toEqual([draining, draining, '200 {"status":"ok"}']);
    close();
  });

  it('an error while it collects: 500, the error object, and the next request is answered', async () => {
    const metrics = createMetrics([
      {
        type: 'gauge',
        name: 'store_gauge',
        help: 'A gauge',
        value: () => {
          throw new Error('secret');
        },
      },
    ]);
    const { port, close } = await open(metrics);
    for (let i = 0; i < 2; i += 1) {
      const reply = await send(port, { path: '/metrics' });
      expect(JSON.parse(reply.text)).toMatchObject({ status: 500, type: 'errors/unexpected_error' });
      expect(reply.text).not.toContain('secret');
    }
    close();
  });

  it('x-request-id of the answer is the req_id of the error', async () => {
    const { port, close } = await open();
    const reply = await send(port, { path: '/nowhere' });
    close();
    expectProblem(reply, 404, 'errors/resource_not_found');
  });

  it('a scraper that goes away does not stop the listener', async () => {
    const { port, close } = await open();
    const connection = await openRaw(port);
    connection.write('GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n');
    connection.socket.resetAndDestroy();
    expect((await send(port, { path: '/metrics' })).status).toBe(200);
    close();
  });
});
