/** A traced request inside the test's own process: what the spans of the gateway have. The tests with a real SDK are in process/. */
import { trace } from '@opentelemetry/api';
import { isInstrumented } from 'headgate/otel';
import { afterFile } from 'headgate-testbed/after-file';
import { recordTelemetry } from 'headgate-testbed/telemetry';
import { answer, startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { RequestTrace } from '../src/exchange/request-trace.ts';
import { configOf } from './support/gateway.ts';
import { startInProcess } from './support/in-process.ts';

const { spans, tracerProvider, inSpan } = recordTelemetry();
trace.setGlobalTracerProvider(tracerProvider);
afterFile(() => trace.disable());

it('a request to the upstream is a client span with its status, or with why it failed; at the end nothing listens', async () => {
  const upstream = await startUpstream();
  const gateway = await startInProcess(configOf(upstream.url));
  expect(isInstrumented()).toBe(true);
  await gateway.ask('GET', '/api/v1/open');
  upstream.behave(answer({ status: 500 }));
  await gateway.ask('GET', '/api/v1/open');
  await upstream.close();
  await gateway.ask('GET', '/api/v1/open');
  await gateway.stop();
  expect(isInstrumented()).toBe(false);
  const shown = spans.map(({ name, attributes, isError, isEnded }) => ({
    name,
    status: attributes['http.response.status_code'],
    error: attributes['error.type'],
    isError,
    isEnded,
  }));
  expect(shown).toEqual([
    { name: 'GET', status: 200, error: undefined, isError: false, isEnded: true },
    { name: 'GET', status: 500, error: '500', isError: true, isEnded: true },
    { name: 'GET', status: undefined, error: 'refused', isError: true, isEnded: true },
  ]);
});

it('without a propagator, the fields of the client pass through', async () => {
  const fields = ['traceparent', '00-x', 'accept', '*/*'];
  await inSpan('server', () => {
    const span = new RequestTrace().startUpstream('GET', 'a.example:80');
    expect(span.propagate(fields)).toEqual(fields);
    span.end();
  });
});
