import { createServer, type Server } from 'node:http';
import { type Health, statusOf } from './health.ts';

/** A text of metrics in Prometheus's format. */
export interface RenderedMetrics {
  readonly contentType: string;
  readonly text: string;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const TIMEOUT_MS = 10_000;

/**
 * The operator's listener: the health checks, and `GET /metrics` for Prometheus. It needs no API key, so only operators
 * may be able to reach its address.
 */
export function createAdminServer(health: Health, metrics: { render(): Promise<RenderedMetrics> }): Server {
  const answers: Readonly<Record<string, () => Promise<Answer>>> = {
    // A supervisor restarts a process that does not answer this. A process that drains, or lost its database, answers.
    '/livez': async () => json(200, { status: 'ok' }),
    '/healthz': async () => json(statusOf(health.live()), health.live()),
    '/readyz': async () => {
      const found = await health.ready();
      return json(statusOf(found), found);
    },
    '/metrics': async () => {
      const { contentType, text } = await metrics.render();
      return { status: 200, type: contentType, body: text };
    },
  };
  return createServer({ requestTimeout: TIMEOUT_MS, headersTimeout: TIMEOUT_MS }, (request, response) => {
    request.resume();
    response.on('error', () => undefined);
    const { method = '', url = '' } = request;
    const answer = method === 'GET' || method === 'HEAD' ? answers[url.split('?', 1)[0] ?? ''] : undefined;
    const known = answer ?? (async () => json(404, { status: 'not found', paths: Object.keys(answers) }));
    void known()
      .catch(() => json(500, { status: 'error' }))
      .then(({ status, type, body }) =>
        response
          .writeHead(status, {
            'content-type': type,
            'content-length': Buffer.byteLength(body),
            'cache-control': 'no-store',
            // A balancer that keeps its connection would keep a process alive that ends.
            ...(health.isDraining ? { connection: 'close' } : {}),
          })
          .end(method === 'HEAD' ? undefined : body),
      );
  });
}

const json = (status: number, value: object): Answer => ({
  status,
  type: 'application/json',
  body: JSON.stringify(value),
});
