import { createServer, type Server } from 'node:http';
import { createProblem, problemReply, type Reply } from '../../http/problem.ts';
import type { Metrics } from './metrics.ts';

/**
 * The operator's listener: `GET /metrics` for Prometheus. It needs no API key, so only operators may be able to reach
 * its address.
 */
export function createAdminServer(metrics: Pick<Metrics, 'render'>): Server {
  return createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    request.resume();
    response.on('error', () => {});
    void answer(metrics, request.method, request.url ?? '').then(({ status, headers, body }) => {
      response.writeHead(status, headers).end(body);
    });
  });
}

async function answer(metrics: Pick<Metrics, 'render'>, method: string | undefined, url: string): Promise<Reply> {
  const id = crypto.randomUUID();
  if (method !== 'GET' || url.split('?', 1)[0] !== '/metrics') {
    const problem = createProblem(404, 'errors/resource_not_found', 'This listener has only GET /metrics.', id);
    return problemReply(problem, { 'x-request-id': id });
  }
  try {
    const { contentType, text } = await metrics.render();
    return { status: 200, headers: { 'content-type': contentType, 'cache-control': 'no-store' }, body: text };
  } catch {
    const problem = createProblem(500, 'errors/unexpected_error', 'The metrics could not be collected.', id);
    return problemReply(problem, { 'x-request-id': id });
  }
}
