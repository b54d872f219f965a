import type { FastifyRequest } from 'fastify';
import { createLimiter, type Decision, StoreFullError } from 'headgate';
import { createClientIp } from 'headgate/client-ip';
import { createMemoryStore } from 'headgate/memory';
import { ServiceError } from '../domain/service-error.ts';

const LIMITS = { allMethods: ['30/1m'] };
/** Clients and links that are counted at a time. */
const MAX_KEYS = 65_536;
const ROUTE = 'POST /auth';

/**
 * Counts the forms that an address and a link send: 30 a minute each. It counts in this process.
 * @param trustedProxies addresses of the proxies in front
 */
export function createPostLimit(trustedProxies: readonly string[]) {
  const limiter = createLimiter({ store: createMemoryStore({ maxKeys: MAX_KEYS }), limits: LIMITS });
  const clientIp = createClientIp(trustedProxies.length === 0 ? {} : { trustedProxies });

  function decide(account: string): Decision {
    try {
      return limiter.consumeSync({ account, route: ROUTE });
    } catch (error) {
      if (!(error instanceof StoreFullError)) throw error;
      throw new ServiceError(503, 'errors/service_unavailable', 'Too many clients at a time.', { retryAfter: 60 });
    }
  }

  function consume(account: string): void {
    const { accepted, shown } = decide(account);
    if (!accepted)
      throw new ServiceError(429, 'api/too_many_requests', 'Too many requests. Wait, then try again.', {
        retryAfter: Math.max(1, Math.ceil((shown?.resetMs ?? 60_000) / 1_000)),
      });
  }

  return {
    /** @throws ServiceError 429 */
    check(request: FastifyRequest, token: string): void {
      const address = clientIp(request.socket.remoteAddress, request.headers);
      // The address comes first: a client that makes up links must not fill the memory.
      if (address !== undefined) consume(`address ${address}`);
      consume(`link ${token.slice(0, 64)}`);
    },
    close: (): void => void limiter.close(),
  };
}
