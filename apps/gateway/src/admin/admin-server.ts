import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createProblem, problemReply, type Reply } from 'headgate/http';
import { type Health, healthCheckOf } from '../operations/health.ts';
import type { Metrics } from '../operations/metrics.ts';
import { shared } from '../operations/shared.ts';
import { OpenConnections } from '../server/open-connections.ts';
import { createHttpServer, type TlsOptions } from '../tls/tls-server.ts';
import type { AdminApi } from './admin-api.ts';
import type { ConsolePages } from './console-pages.ts';

/** Longest wait for a request, and for a client to read more of an answer, in milliseconds. */
const SILENCE_MS = 10_000;
/** Clients are a few scrapers, probes and operators. Without a bound, others could take the file descriptors of the gateway. */
const MAX_CONNECTIONS = 256;

/** The parts of the operator's listener. */
export interface AdminServerOptions {
  readonly metrics: Pick<Metrics, 'render'>;
  readonly health: Health;
  readonly tls?: TlsOptions | undefined;
  /** Undefined if the process cannot offer an Admin API. */
  readonly api?: AdminApi | undefined;
  /** The console of the Admin API. */
  readonly console?: ConsolePages | undefined;
}

/**
 * The operator's listener: `GET /metrics` for Prometheus, the health checks, and the Admin API with its console. The
 * first two need no token, so only operators may reach its address or own a certificate for it.
 */
export function createAdminServer({ metrics, health, tls, api, console }: AdminServerOptions): Server {
  // To collect the metrics takes milliseconds, and asks every worker.
  const render = shared(() => metrics.render());
  const server = createHttpServer({ requestTimeout: SILENCE_MS, headersTimeout: SILENCE_MS }, tls);
  server.timeout = SILENCE_MS;
  const connections = new OpenConnections(server, { maxConnections: MAX_CONNECTIONS });
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const check = healthCheckOf(request.method, request.url);
    const pages = api?.isOn && console?.isFor(request) ? console : undefined;
    if (check === undefined && pages === undefined && api?.isOn && !isForMetrics(request)) {
      await api.handle(request, response);
      return;
    }
    request.resume();
    const { status, headers, body } = await (check === undefined
      ? (pages?.answer(request) ?? answerMetrics(render, request))
      : health.answer(check));
    response.writeHead(status, headers).end(body);
  };
  server.on('request', (request, response) => {
    response.on('error', () => {});
    request.on('error', () => {});
    const { socket } = request;
    const end = (): void => connections.end(socket);
    connections.begin(socket);
    // A request ends here when its whole answer is written, even if the client does not read it: `/metrics` needs no
    // token, so such clients must give way too.
    void answer(request, response).then(() => (response.writableEnded ? end() : response.once('close', end)));
  });
  return server;
}

function isForMetrics({ method, url = '' }: IncomingMessage): boolean {
  return method === 'GET' && url.split('?', 1)[0] === '/metrics';
}

async function answerMetrics(render: Metrics['render'], request: IncomingMessage): Promise<Reply> {
  const id = crypto.randomUUID();
  if (!isForMetrics(request)) {
    const detail = 'This listener has only GET /metrics, /healthz, /livez and /readyz.';
    return problemReply(createProblem(404, 'errors/resource_not_found', detail, id), { 'x-request-id': id });
  }
  try {
    const { contentType, text } = await render();
    return { status: 200, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body: text };
  } catch {
    const problem = createProblem(500, 'errors/unexpected_error', 'The metrics could not be collected.', id);
    return problemReply(problem, { 'x-request-id': id });
  }
}
