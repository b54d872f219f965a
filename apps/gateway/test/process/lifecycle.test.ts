/** /healthz, and draining: new requests are refused or get 503, and running ones finish within drainMs. */

import { eventually, oneConnection, openRaw, rawRequest, send } from 'headgate-testbed/raw-http';
import { answer, held, startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { configOf, startGateway, TOKEN } from '../support/gateway.ts';

describe('SIGTERM', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('%s: an idle process exits 0 at once', async (signal) => {
    const gateway = await startGateway(configOf('http://127.0.0.1:1'));
    const began = performance.now();
    gateway.signal(signal);
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - began).toBeLessThan(3_000);
  });

  it('a running request finishes, its body to the last byte, and the exit code is 0', async () => {
    const hold = held(answer({ body: 'worth the wait'.repeat(10_000), headers: {} }));
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startGateway(configOf(upstream.url));
    const running = gateway.ask('GET', '/api/v1/chats?account_id=acc_1');
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    gateway.signal('SIGTERM');
    await eventually(() => refused(gateway.port), 'new requests refused');
    expect(gateway.process.exitCode).toBeNull();
    hold.release();
    const reply = await running;
    expect(reply).toMatchObject({ status: 200, broken: false, text: 'worth the wait'.repeat(10_000) });
    expect(reply.headers['x-ratelimit-remaining']).toBe('999');
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    expect(upstream.seen).toHaveLength(1);
  });

  it('an upload that has begun finishes too', async () => {
    const upstream = await startUpstream();
    const gateway = await startGateway(configOf(upstream.url));
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', '/api/v1/open', { 'x-api-key': TOKEN, 'content-length': '10' }));
    connection.write('first');
    await eventually(() => upstream.seen.length === 1, 'the request at the upstream');
    gateway.signal('SIGTERM');
    await eventually(() => refused(gateway.port), 'new requests refused');
    connection.write(' last');
    const [reply] = await connection.waitFor(1);
    expect(reply?.status).toBe(200);
    expect(upstream.last().body().toString()).toBe('first last');
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
  });

  it('a keep-alive connection: new requests on it are refused or get 503, /healthz too, and nothing is forwarded', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startGateway(configOf(upstream.url));
    const kept = await openRaw(gateway.port);
    kept.write(rawRequest('GET', '/healthz'));
    await kept.waitFor(1);
    const running = gateway.ask('GET', '/api/v1/open');
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    gateway.signal('SIGTERM');
    await eventually(() => refused(gateway.port), 'new requests refused');
    kept.write(rawRequest('GET', '/healthz') + rawRequest('GET', '/api/v1/open', { 'x-api-key': TOKEN }));
    await Promise.race([kept.waitFor(2), kept.closed]).catch(() => {});
    for (const reply of kept.replies().slice(1)) expect(reply.status).toBe(503);
    expect(upstream.seen).toHaveLength(1);
    hold.release();
    expect((await running).status).toBe(200);
    expect((await gateway.exited).code).toBe(0);
  });

  it('requests after a running one, or with half of their head received, are no longer forwarded', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startGateway(configOf(upstream.url));
    const busy = await openRaw(gateway.port);
    const halves = [await openRaw(gateway.port), await openRaw(gateway.port)] as const;
    const health = rawRequest('GET', '/healthz');
    const open = rawRequest('GET', '/api/v1/open', { 'x-api-key': TOKEN });
    busy.write(open);
    for (const [i, text] of [open, health].entries()) halves[i]?.write(text.slice(0, 20));
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    gateway.signal('SIGTERM');
    await eventually(() => refused(gateway.port), 'new requests refused');
    busy.write(open + health);
    for (const [i, text] of [open, health].entries()) halves[i]?.write(text.slice(20));
    for (const half of halves) await Promise.race([half.waitFor(1), half.closed]).catch(() => {});
    hold.release();
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    expect(busy.replies()[0]?.status).toBe(200);
    for (const reply of [...busy.replies().slice(1), ...halves.flatMap((half) => half.replies())])
      expect(reply.status).toBe(503);
    expect(upstream.seen).toHaveLength(1);
  });

  it('idle keep-alive connections do not delay the shutdown', async () => {
    const upstream = await startUpstream();
    const gateway = await startGateway(configOf(upstream.url, { drainMs: 20_000 }));
    const agent = oneConnection();
    await send(gateway.port, { path: '/api/v1/open', agent, headers: { 'x-api-key': TOKEN } });
    const silent = await openRaw(gateway.port);
    const began = performance.now();
    gateway.signal('SIGTERM');
    expect((await gateway.exited).code).toBe(0);
    expect(performance.now() - began).toBeLessThan(5_000);
    agent.destroy();
    silent.destroy();
  });

  it('a request that hangs delays the shutdown by at most drainMs', async () => {
    const hold = held();
    const upstream = await startUpstream(hold.behaviour);
    const gateway = await startGateway(configOf(upstream.url, { drainMs: 500 }));
    const hanging = gateway.ask('GET', '/api/v1/open').then(
      (reply) => reply.status,
      () => 'broken' as const,
    );
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    const began = performance.now();
    gateway.signal('SIGTERM');
    const { signal } = await gateway.exited;
    expect(signal).toBeNull();
    expect(performance.now() - began).toBeGreaterThan(450);
    expect(performance.now() - began).toBeLessThan(3_500);
    expect(await hanging).toBe('broken');
    // The log says what the client saw.
    const line = gateway.log().find(({ msg }) => msg === 'request');
    expect(line).toMatchObject({ status: 499, aborted: true });
  });
});

describe('/healthz', () => {
  it('is answered by the gateway: neither forwarded nor limited, with a key or without', async () => {
    const upstream = await startUpstream();
    const gateway = await startGateway(configOf(upstream.url, { limits: { default: { allMethods: ['0/1m'] } } }));
    for (const key of [undefined, TOKEN, 'nobody']) {
      const reply = await gateway.ask('GET', '/healthz', { 'x-api-key': key });
      expect({ status: reply.status, body: JSON.parse(reply.text) }).toEqual({ status: 200, body: { status: 'ok' } });
    }
    expect(upstream.seen).toHaveLength(0);
    await gateway.stop();
  });
});

/** Whether a new connection is refused, or gets 503. */
const refused = (port: number): Promise<boolean> =>
  send(port, { path: '/healthz' }).then(
    (reply) => reply.status === 503,
    () => true,
  );
