/** An internal error is answered with 500 and the req_id of its log line, and the process goes on. */
import type { AddressInfo } from 'node:net';
import type { GateEntry } from 'headgate/gate';
import { eventually, openRaw, pause, rawRequest, send } from 'headgate-testbed/raw-http';
import { afterEach, expect, it, vi } from 'vitest';
import type { Exchange } from '../../src/exchange/exchange.ts';
import { createHealth } from '../../src/operations/health.ts';
import { createMetrics } from '../../src/operations/metrics.ts';
import type { Rules } from '../../src/server/rules.ts';
import { createGatewayServer, type ServerOptions } from '../../src/server/server.ts';
import { passageOf } from '../support/exchange-server.ts';
import { expectProblem } from '../support/gateway.ts';
import { openLog } from '../support/in-process.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((clean) => clean()));
});

type Parts = Partial<Rules> & Partial<ServerOptions>;

/** A main listener with the parts that a test is about. The other parts admit every request and answer 200. */
async function start({ admit, gate, forward, ...parts }: Parts = {}) {
  const { log, lines } = openLog();
  const metrics = createMetrics([]);
  const health = createHealth(async () => 'ok');
  const gatewayServer = createGatewayServer({
    rules: () => ({
      admit: admit ?? (() => undefined),
      gate: gate ?? { enter: () => passageOf() },
      forward: forward ?? (({ response }) => void response.end('forwarded')),
    }),
    revision: () => '0',
    log,
    metrics,
    traffic: { onAnswered() {} },
    verdict: () => undefined,
    health,
    maxConnections: 100,
    silence: { clientTimeoutMs: 10_000, silenceMs: 10_000 },
    ...parts,
  });
  const { server } = gatewayServer;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { ...gatewayServer, health, port: (server.address() as AddressInfo).port, lines, metrics };
}

const secret = (): never => {
  throw new Error('secret');
};

it.each<[stage: string, parts: Parts]>([
  ['admission', { admit: secret }],
  ['the gate', { gate: { enter: secret } }],
  ['the gate, later', { gate: { enter: () => Promise.reject(new Error('secret')) } }],
  ['the proxy', { forward: secret }],
])('an error in %s: 500, and the log has it under the same req_id', async (_stage, parts) => {
  const { port, lines } = await start(parts);
  const reply = await send(port, { path: '/x' });
  const { req_id } = expectProblem(reply, 500, 'errors/unexpected_error');
  expect(reply.text).not.toContain('secret');
  const failures = () => lines().filter(({ msg }) => msg === 'unexpected error');
  await eventually(() => failures().length > 0, 'its line in the log');
  expect(failures()).toMatchObject([{ req_id, level: 50, err: { message: 'secret' } }]);
  expect((await send(port, { path: '/healthz' })).status).toBe(200);
});

it('after an error in mid-answer the answer breaks off, so that the client does not take half of it for the whole', async () => {
  const { port, lines, connections } = await start({
    forward(exchange) {
      exchange.answered = true;
      exchange.response.write('half');
      secret();
    },
  });
  await expect(send(port, { path: '/x' })).rejects.toThrow();
  await eventually(() => connections.running === 0, 'its end');
  await eventually(() => lines().length === 2, 'its lines');
  expect(lines()).toMatchObject([{ msg: 'unexpected error' }, { msg: 'request', aborted: true }]);
});

it.each(['at once', 'later'])('an answer of the gate, %s, is sent and logged', async (when) => {
  const entry = (status: number): GateEntry => ({
    kind: 'answer',
    reply: { status, headers: { 'x-own': '1' }, body: 'no' },
  });
  let status = 429;
  const enter = () => (when === 'at once' ? entry(status) : Promise.resolve(entry(status)));
  const { port, lines } = await start({ gate: { enter } });
  expect(await send(port, { path: '/x' })).toMatchObject({ status: 429, text: 'no', headers: { 'x-own': '1' } });
  status = 503;
  expect((await send(port, { path: '/x' })).status).toBe(503);
  await eventually(() => lines().length === 2, 'two lines');
  expect(lines().map(({ decision }) => decision)).toEqual(['rejected', 'refused']);
});

it.each([
  [undefined, 'unlimited'],
  [{ degraded: false }, 'accepted'],
  [{ degraded: true }, 'degraded'],
])('a passage with the decision %j is logged as %s', async (decision, word) => {
  const { port, lines } = await start({ gate: { enter: () => passageOf({ decision: decision as never }) } });
  expect((await send(port, { path: '/x' })).text).toBe('forwarded');
  await eventually(() => lines().length === 1, 'its line');
  expect(lines()).toMatchObject([{ decision: word, route: null, method: 'GET', status: 200 }]);
});

it('S13: if the client left while the gate decided, nothing is forwarded, and the charge is refunded', async () => {
  const abandon = vi.fn(async () => undefined);
  const forward = vi.fn();
  let decide: (entry: GateEntry) => void = () => {};
  const asked = vi.fn(
    () =>
      new Promise<GateEntry>((resolve) => {
        decide = resolve;
      }),
  );
  const { port, lines, metrics, connections } = await start({
    gate: { enter: asked },
    forward,
  });
  const connection = await openRaw(port);
  connection.write(rawRequest('GET', '/x'));
  await eventually(() => asked.mock.calls.length === 1, 'the question');
  connection.destroy();
  await eventually(() => connections.running === 0, 'its end');
  decide(passageOf({ abandon }));
  await eventually(() => abandon.mock.calls.length === 1, 'the refund');
  expect(forward).not.toHaveBeenCalled();
  await eventually(() => lines().length === 1, 'its line');
  expect(lines()).toMatchObject([{ status: 499, aborted: true }]);
  expect((await metrics.render()).text).toContain('headgate_requests_total{route="none",status="499"} 1');
});

it('malformed HTTP is logged and counted, although it never becomes a request', async () => {
  const { port, lines, metrics } = await start();
  const connection = await openRaw(port);
  connection.write('GARBAGE\r\n\r\n');
  const [reply] = await connection.waitFor(1);
  await connection.closed;
  await eventually(() => lines().length === 1, 'its line');
  expect(lines()).toMatchObject([{ msg: 'malformed request', status: 400, req_id: reply?.headers['x-request-id'] }]);
  expect((await metrics.render()).text).toContain('headgate_requests_total{route="none",status="400"} 1');
});

it('the gateway itself answers health checks: GET and HEAD, with or without a query, and does not log them', async () => {
  const { port, lines, health, metrics } = await start();
  for (const path of ['/healthz', '/healthz?x', '/readyz', '/readyz?x', '/livez', '/livez?x']) {
    const reply = await send(port, { path });
    expect(reply).toMatchObject({ status: 200, text: '{"status":"ok"}', headers: { 'cache-control': 'no-store' } });
    const head = await send(port, { method: 'HEAD', path });
    expect(head).toMatchObject({ status: 200, text: '', headers: { 'content-length': '15' } });
  }
  expect((await send(port, { method: 'POST', path: '/healthz' })).text).toBe('forwarded');
  expect((await send(port, { path: '/healthzz' })).text).toBe('forwarded');
  expect((await send(port, { path: '/livez/x' })).text).toBe('forwarded');
  await eventually(() => lines().length === 3, 'the lines of the three others');
  const { text } = await metrics.render();
  for (const path of ['healthz', 'readyz', 'livez'])
    expect(text).toContain(`headgate_requests_total{route="GET /${path}",status="200"} 4`);
  health.drain();
  for (const path of ['/healthz', '/readyz'])
    expect(await send(port, { path })).toMatchObject({ status: 503, text: '{"status":"draining"}' });
  expect(await send(port, { path: '/livez' })).toMatchObject({ status: 200, text: '{"status":"ok"}' });
  // It still serves: a load balancer needs time to notice.
  expect((await send(port, { path: '/x' })).text).toBe('forwarded');
});

it('an upstream may take longer than clientTimeoutMs, but a client that reads nothing of its answer may not', async () => {
  const answers: (() => void)[] = [];
  const forward = ({ response }: Exchange) => void answers.push(() => response.end('x'.repeat(30_000_000)));
  const { port, connections } = await start({ silence: { clientTimeoutMs: 1_000, silenceMs: 20_000 }, forward });
  const [reading, silent] = await Promise.all([openRaw(port), openRaw(port)]);
  silent.socket.pause();
  let bytes = 0;
  reading.socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  for (const connection of [reading, silent]) connection.write(rawRequest('GET', '/x'));
  await eventually(() => answers.length === 2, 'both requests');
  await pause(1_500);
  expect(connections.running).toBe(2);
  for (const answer of answers.splice(0)) answer();
  await eventually(() => connections.running === 0, 'the end of both');
  await eventually(() => bytes > 30_000_000, 'the whole answer');
  expect(connections.open).toBe(1);
  silent.socket.resume();
  await silent.closed;
  expect(silent.received().length).toBeLessThan(30_000_000);
});

it('a connection past maxConnections takes the place of the one that has been idle for the longest time', async () => {
  const running: Exchange[] = [];
  const forward = (exchange: Exchange) => void running.push(exchange);
  const { port, connections } = await start({ maxConnections: 3, forward });
  const [busy, idle] = [await openRaw(port), await openRaw(port)];
  await eventually(() => connections.open === 2, 'two connections');
  busy.write(rawRequest('GET', '/x'));
  await eventually(() => running.length === 1, 'the request');
  const [third, fourth] = [await openRaw(port), await openRaw(port)];
  await idle.closed;
  for (const connection of [third, fourth]) connection.write(rawRequest('GET', '/x'));
  await eventually(() => running.length === 3, 'the requests of the new connections');
  // No connection is idle now.
  const fifth = await openRaw(port);
  await fifth.closed;
  expect(connections.open).toBe(3);
  for (const { response } of running) response.end('fine');
  for (const connection of [busy, third, fourth]) expect(await connection.waitFor(1)).toMatchObject([{ text: 'fine' }]);
  // The connection of the first answer is idle again, and gives way.
  const sixth = await openRaw(port);
  sixth.write(rawRequest('GET', '/x'));
  await eventually(() => running.length === 4, 'the request of a later connection');
});

it('closes a connection after silenceMs without data', async () => {
  const { port } = await start({ silence: { clientTimeoutMs: 10_000, silenceMs: 50 } });
  const connection = await openRaw(port);
  await connection.closed;
  expect(connection.received()).toBe('');
});

it('other limits for silence apply to an open connection from its next request on', async () => {
  const { port, setSilence } = await start({ forward: () => {} });
  const connection = await openRaw(port);
  connection.write(rawRequest('GET', '/healthz'));
  await connection.waitFor(1);
  setSilence({ clientTimeoutMs: 10_000, silenceMs: 50 });
  connection.write(rawRequest('GET', '/x'));
  await connection.closed;
  expect(connection.replies()).toHaveLength(1);
});
