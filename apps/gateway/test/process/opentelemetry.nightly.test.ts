/** The process with a real SDK of OpenTelemetry, which `--import` starts, and a collector that takes what it sends. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually, openRaw } from 'headgate-testbed/raw-http';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { beforeAll, expect, inject, it } from 'vitest';
import { startCollector } from '../support/collector.ts';
import { type Config, configOf, type Gateway, startGateway, TOKEN } from '../support/gateway.ts';
import { installSdk, writeProgram } from '../support/otel-sdk.ts';

const ROOT = resolve(import.meta.dirname, '../../../..');
/** The program of the page. */
const OTEL = /^```js\n(.*?)^```/ms.exec(readFileSync(join(ROOT, 'docs/opentelemetry.md'), 'utf8'))?.[1] as string;
const SERVER = 2;
const CLIENT = 3;

let upstream: Upstream;
let collector: Awaited<ReturnType<typeof startCollector>>;

beforeAll(async () => {
  installSdk();
  upstream = await startUpstream();
  collector = await startCollector();
}, 300_000);

const redis = () => `redis://127.0.0.1:${inject('redis').port}`;
const start = (program: string, config: Config = {}): Promise<Gateway> =>
  startGateway(configOf(upstream.url, { limits: { default: { allMethods: ['3/1m'] } }, ...config }), [], {
    NODE_OPTIONS: `--import ${pathToFileURL(program).href}`,
    OTEL_SERVICE_NAME: 'headgate',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_METRICS_EXPORTER: 'otlp',
    OTEL_LOGS_EXPORTER: 'none',
    OTEL_BSP_SCHEDULE_DELAY: '50',
  });
/** A trace that a caller of the gateway has begun. */
const caller = () => {
  const hex = (bytes: number) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex');
  const [traceId, spanId] = [hex(16), hex(8)];
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
};
const spansOf = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId);
const send = (gateway: Gateway, account: string, traceparent: string) =>
  gateway.ask('POST', '/api/v1/messages', { 'x-account-id': account, traceparent });

it('a request is one trace: caller, server, store, upstream; the log has its ids, and no account is named', async () => {
  const gateway = await start(writeProgram('otel.mjs', OTEL), { store: redis() });
  const { traceId, spanId, traceparent } = caller();
  await send(gateway, 'acc_7', traceparent);
  const seen = upstream.last().headers.traceparent;
  for (let i = 0; i < 3; i += 1) await send(gateway, 'acc_7', caller().traceparent);
  const refused = caller();
  await gateway.ask('POST', '/api/v1/messages', { 'x-api-key': 'wrong', traceparent: refused.traceparent });
  await eventually(() => gateway.log().filter(({ msg }) => msg === 'request').length === 5, 'the log');
  const line = gateway.log().find(({ trace_id }) => trace_id === traceId);
  // What is recorded is sent before the process ends.
  expect(await gateway.stop()).toMatchObject({ code: 0 });

  const spans = spansOf(traceId);
  const server = spans.find(({ kind }) => kind === SERVER);
  expect(server).toMatchObject({
    name: 'POST /api/v1/messages',
    parentSpanId: spanId,
    attributes: {
      'http.route': '/api/v1/messages',
      'headgate.limits.revision': expect.stringMatching(/^(?:0|\d+\.\w+)$/),
      'headgate.outcome': 'accepted',
      'headgate.limit': 'all-methods',
      'headgate.window.duration_ms': 60_000,
      'headgate.window.max': 3,
      'headgate.window.remaining': 2,
    },
  });
  expect(line).toMatchObject({ msg: 'request', status: 200, span_id: server?.spanId });
  const children = spans.filter(({ parentSpanId }) => parentSpanId === server?.spanId);
  expect(children.map(({ name, kind }) => [name, kind])).toEqual([
    ['headgate.store consume', CLIENT],
    ['POST', CLIENT],
  ]);
  expect(children[0]?.attributes).toMatchObject({ 'headgate.store': 'limits', 'headgate.store.operation': 'consume' });
  expect(children[1]?.attributes).toEqual({
    'http.request.method': 'POST',
    'http.response.status_code': 200,
    'server.address': '127.0.0.1',
    'server.port': upstream.port,
  });
  expect(seen).toBe(`00-${traceId}-${children[1]?.spanId}-01`);
  expect(spansOf(refused.traceId)).toEqual([
    expect.objectContaining({
      name: 'POST /api/v1/messages',
      attributes: expect.objectContaining({ 'headgate.outcome': 'refused' }),
    }),
  ]);

  const decisions = collector.metrics('headgate.decisions');
  expect(decisions.map(({ value, unit, attributes }) => [attributes['headgate.outcome'], value, unit])).toEqual([
    ['accepted', 3, '{decision}'],
    ['rejected', 1, '{decision}'],
  ]);
  expect(decisions[0]?.attributes['headgate.route']).toBe('POST /api/v1/messages');
  expect(collector.metrics('headgate.store.duration')).toContainEqual(
    expect.objectContaining({
      unit: 's',
      attributes: expect.objectContaining({ 'headgate.store.operation': 'consume' }),
    }),
  );
  expect(collector.metrics('headgate.limits.age').at(-1)?.value).toBeGreaterThanOrEqual(0);
  expect(collector.metrics('headgate.store.breaker')).toContainEqual(
    expect.objectContaining({ value: 0, attributes: { 'headgate.store': 'limits' } }),
  );
  // The metrics of Node's HTTP server know the route.
  expect(collector.text()).toMatch(
    /"name":"http\.server\.[\s\S]*"key":"http\.route","value":\{"stringValue":"\/api\/v1\/messages"\}/,
  );
  expect(collector.text()).not.toContain('acc_7');
});

it('each request keeps its trace: behind others on one connection, on a connection to the upstream that it shares, and if it fails', async () => {
  const gateway = await start(writeProgram('otel.mjs', OTEL));
  const callers = Array.from({ length: 7 }, caller);
  const raw = await openRaw(gateway.port);
  raw.write(
    callers
      .map(
        ({ traceparent }) =>
          `GET /api/v1/open HTTP/1.1\r\nhost: a\r\nx-api-key: ${TOKEN}\r\ntraceparent: ${traceparent}\r\n\r\n`,
      )
      .join(''),
  );
  const lines = () => gateway.log().filter(({ msg }) => msg === 'request');
  await eventually(() => lines().length === callers.length, 'every line');
  expect(lines().map(({ trace_id }) => trace_id)).toEqual(callers.map(({ traceId }) => traceId));
  const seen = upstream.seen.slice(-callers.length).map(({ headers }) => headers.traceparent?.slice(3, 35));
  expect(seen.toSorted()).toEqual(callers.map(({ traceId }) => traceId).toSorted());
  raw.socket.destroy();

  // The connection to the upstream was opened by one of them.
  upstream.behave((_seen, response) => void response.socket?.destroy());
  const failed = caller();
  await gateway.ask('GET', '/api/v1/open', { traceparent: failed.traceparent });
  upstream.reset();
  const warning = () => gateway.log().find(({ msg }) => msg === 'upstream failed');
  await eventually(() => warning() !== undefined, 'the warning');
  expect(warning()?.trace_id).toBe(failed.traceId);
  await gateway.stop();
  const client = spansOf(failed.traceId).find(({ kind }) => kind === CLIENT);
  expect(client).toMatchObject({ isError: true, attributes: { 'error.type': warning()?.cause } });
  for (const { traceId } of callers) {
    expect(spansOf(traceId).map(({ name, attributes }) => [name, attributes['headgate.outcome']])).toEqual(
      expect.arrayContaining([
        ['GET /api/v1/open', 'unlimited'],
        ['GET', undefined],
      ]),
    );
  }
});

it('if otel.mjs calls instrument with an option of its own, that holds, and nothing counts twice', async () => {
  const code = `${OTEL}\nimport { instrument } from ${JSON.stringify(pathToFileURL(join(ROOT, 'dist/otel.js')).href)};\ninstrument({ account: 'plain' });\n`;
  const gateway = await start(writeProgram('account.mjs', code));
  const before = collector.metrics('headgate.decisions').length;
  const { traceId, traceparent } = caller();
  await gateway.ask('GET', '/api/v1/accounts/acc_9/chats', { traceparent });
  await gateway.stop();
  expect(spansOf(traceId).find(({ kind }) => kind === SERVER)?.attributes['headgate.account']).toBe('acc_9');
  const own = collector.metrics('headgate.decisions').slice(before);
  expect(own.map(({ value }) => value)).toEqual([1]);
});

it('with workers, a request is one trace of the worker that served it, and its resource names the process', async () => {
  const gateway = await start(writeProgram('otel.mjs', OTEL), { store: redis(), workers: 2 });
  const { traceId, traceparent } = caller();
  await send(gateway, 'acc_8', traceparent);
  expect(await gateway.stop()).toMatchObject({ code: 0 });
  const server = spansOf(traceId).find(({ kind }) => kind === SERVER);
  expect(spansOf(traceId).filter(({ parentSpanId }) => parentSpanId === server?.spanId)).toMatchObject([
    { name: 'headgate.store consume' },
    { name: 'POST', attributes: { 'http.response.status_code': 200 } },
  ]);
  expect(collector.text()).toMatch(/"key":"process\.pid"/);
});

it('without an SDK the log has no ids, and the traceparent of the client passes through', async () => {
  const gateway = await startGateway(configOf(upstream.url));
  const { traceparent } = caller();
  await gateway.ask('GET', '/api/v1/open', { traceparent });
  expect(upstream.last().headers.traceparent).toBe(traceparent);
  await gateway.stop();
  expect(gateway.log().some((line) => 'trace_id' in line)).toBe(false);
});
