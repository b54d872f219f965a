import type { Reply } from '../../http/problem.ts';

/** A path of a health check, as its route in the metrics. A HEAD of the path counts as its GET. */
export type HealthCheck = 'GET /healthz' | 'GET /livez' | 'GET /readyz';

/** What the gateway answers to health checks. Both listeners have them. */
export interface Health {
  /** From now on the gateway is alive, but not ready. */
  drain(): void;
  answer(check: HealthCheck): Promise<Reply>;
}

/** @param store health of the store; a gateway without its store is ready, because it decides by itself */
export function createHealth(store: () => Promise<'ok' | 'degraded'>): Health {
  let draining = false;
  return {
    drain() {
      draining = true;
    },
    async answer(check) {
      if (check === 'GET /livez') return reply(200, 'ok');
      return draining ? reply(503, 'draining') : reply(200, await store());
    },
  };
}

const CHECK = /^\/(?:healthz|livez|readyz)(?=\?|$)/;

/** The health check that a request asks for. */
export function healthCheckOf(method: string | undefined, url = ''): HealthCheck | undefined {
  const path = CHECK.exec(url)?.[0];
  if (path === undefined || (method !== 'GET' && method !== 'HEAD')) return undefined;
  return `GET ${path}` as HealthCheck;
}

function reply(status: number, word: 'ok' | 'degraded' | 'draining'): Reply {
  const body = JSON.stringify({ status: word });
  return {
    status,
    headers: {
      'content-type': 'application/json',
      'content-length': String(body.length),
      'cache-control': 'no-store',
    },
    body,
  };
}
