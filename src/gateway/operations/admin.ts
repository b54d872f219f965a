import type { Server } from 'node:http';
import { createProblem, problemReply, type Reply } from '../../http/problem.ts';
import { createHttpServer, type TlsOptions } from '../tls/tls-server.ts';
import { type Health, healthCheckOf } from './health.ts';
import type { Metrics } from './metrics.ts';
import { shared } from './shared.ts';

/** Longest wait for a request, and for a client to read more of an answer, in milliseconds. */
const SILENCE_MS = 10_000;
/** Clients are a few scrapers and probes. Without a bound, others could take the file descriptors of the gateway. */
const MAX_CONNECTIONS = 256;

/**
 * The operator's listener: `GET /metrics` for Prometheus, and the health checks. It needs no API key, so only operators
 * may be able to reach its address, or have a certificate for it.
 */
export function createAdminServer(metrics: Pick<Metrics, 'render'>, health: Health, tls?: TlsOptions): Server {
  // To collect the metrics takes milliseconds, and asks every worker.
  const sharing = { render: shared(() => metrics.render()) };
  const server = createHttpServer({ requestTimeout: SILENCE_MS, headersTimeout: SILENCE_MS }, tls);
  server.timeout = SILENCE_MS;
  server.maxConnections = MAX_CONNECTIONS;
  server.on('request', (request, response) => {
    request.resume();
    response.on('error', () => {});
    const check = healthCheckOf(request.method, request.url);
    const answer =
      check === undefined ? answerMetrics(sharing, request.method, request.url ?? '') : health.answer(check);
    void answer.then(({ status, headers, body }) => {
      response.writeHead(status, headers).end(body);
    });
  });
  return server;
}

async function answerMetrics(
  metrics: Pick<Metrics, 'render'>,
  method: string | undefined,
  url: string,
): Promise<Reply> {
  const id = crypto.randomUUID();
  if (method !== 'GET' || url.split('?', 1)[0] !== '/metrics') {
    const detail = 'This listener has only GET /metrics, /healthz, /livez and /readyz.';
    return problemReply(createProblem(404, 'errors/resource_not_found', detail, id), { 'x-request-id': id });
  }
  try {
    const { contentType, text } = await metrics.render();
    return { status: 200, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body: text };
  } catch {
    const problem = createProblem(500, 'errors/unexpected_error', 'The metrics could not be collected.', id);
    return problemReply(problem, { 'x-request-id': id });
  }
}
