import type { Reply } from 'headgate/http';
import { shared } from './shared.ts';

/** A path of a health check, as its route in the metrics. A HEAD of the path counts as its GET. */
export type HealthCheck = 'GET /healthz' | 'GET /livez' | 'GET /readyz';

/** The gateway's answers to health checks. Both listeners serve them. */
export interface Health {
  /** From now on the gateway is alive, but not ready. Nothing makes it ready again. */
  drain(): void;
  /** Says that the gateway is not ready, so that a load balancer takes it out, or that it is ready again. */
  setReady(isReady: boolean): void;
  readonly isReady: boolean;
  answer(check: HealthCheck): Promise<Reply>;
}

/**
 * @param state of what serves: `degraded` without the store, which is ready, because the gateway decides by itself;
 * `starting` if nothing listens
 */
export function createHealth(state: () => Promise<'ok' | 'degraded' | 'starting'>): Health {
  let draining = false;
  let takenOut = false;
  const current = shared(state);
  return {
    drain() {
      draining = true;
    },
    setReady(isReady) {
      takenOut = !isReady;
    },
    get isReady() {
      return !draining && !takenOut;
    },
    async answer(check) {
      if (check === 'GET /livez') return reply('ok');
      return reply(draining || takenOut ? 'draining' : await current());
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

function reply(status: 'ok' | 'degraded' | 'starting' | 'draining'): Reply {
  const body = JSON.stringify({ status });
  return {
    status: status === 'ok' || status === 'degraded' ? 200 : 503,
    headers: {
      'content-type': 'application/json',
      'content-length': String(body.length),
      'cache-control': 'no-store',
    },
    body,
  };
}
