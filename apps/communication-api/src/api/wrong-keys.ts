import type { FastifyRequest } from 'fastify';
import { createLimiter, isHeadgateError } from 'headgate';
import { createClientIp } from 'headgate/client-ip';
import { createMemoryStore } from 'headgate/memory';

/** Requests with a wrong key that one client may make before it must wait. */
const WINDOW = '20/1m';

/**
 * Counts requests with a wrong key, per client address and process. Correct keys from the same address are not
 * affected.
 * @returns a function that counts one request, and returns the seconds that its client must wait; undefined: none
 */
export function wrongKeyLimit(
  trustedProxies: readonly string[],
): (request: Pick<FastifyRequest, 'socket' | 'headers'>) => number | undefined {
  const clientIp = createClientIp({ trustedProxies });
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: [WINDOW] } });
  return ({ socket, headers }) => {
    try {
      const account = clientIp(socket.remoteAddress, headers) ?? '';
      const { accepted, shown } = limiter.consumeSync({ account, route: 'wrong key' });
      return accepted ? undefined : Math.ceil((shown?.resetMs ?? 0) / 1_000);
    } catch (error) {
      // More addresses than the store can hold: the key is refused all the same, only without a time to wait.
      if (isHeadgateError(error, 'store_full')) return undefined;
      throw error;
    }
  };
}
