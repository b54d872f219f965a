import type { FastifyRequest } from 'fastify';
import { createClientIp } from 'headgate/client-ip';
import type { Rooms } from '../rooms.ts';

const TEXT = 'Too many requests. Wait, then try again.';

/**
 * Makes a function that counts the forms that an address and a link send. It rejects with a ServiceError 429 after too
 * many of them.
 */
export function createPostLimit({ config, guards }: Pick<Rooms, 'config' | 'guards'>) {
  const clientIp = createClientIp({ trustedProxies: config.TRUSTED_PROXIES });
  return async ({ socket, headers }: FastifyRequest, token: string): Promise<void> => {
    const address = clientIp(socket.remoteAddress, headers);
    // The address comes first: a client that makes up links must not fill the counters.
    if (address !== undefined) await guards.check('wizard address', address, TEXT);
    await guards.check('wizard link', token.slice(0, 64), TEXT);
  };
}
