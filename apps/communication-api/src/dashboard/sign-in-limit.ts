import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { createClientIp } from 'headgate/client-ip';
import type { Rooms } from '../rooms.ts';

/** Counts attempts to sign in: forms without a session by address, passwords by login, and codes by member. */
export function createSignInLimit({ config, guards }: Pick<Rooms, 'config' | 'guards'>) {
  const clientIp = createClientIp({ trustedProxies: config.TRUSTED_PROXIES });
  const addressOf = ({ socket, headers }: FastifyRequest): string | undefined =>
    clientIp(socket.remoteAddress, headers);

  return {
    /** The address of a client. */
    addressOf,
    /** @throws ServiceError 429 */
    checkAddress: (request: FastifyRequest): Promise<void> => guards.check('form', addressOf(request) ?? 'unknown'),
    /**
     * To be called before a password is compared.
     * @throws ServiceError 429
     */
    checkLogin: (email: string): Promise<void> => guards.check('password', keyOf(email)),
    /** The password was right: earlier attempts no longer count. */
    forgive: (email: string): Promise<void> => guards.forgive('password', keyOf(email)),
    /**
     * To be called before a code is compared.
     * @throws ServiceError 429
     */
    checkCode: (memberId: string): Promise<void> => guards.check('code', memberId),
    /** The code was right: earlier attempts no longer count. */
    forgiveCode: (memberId: string): Promise<void> => guards.forgive('code', memberId),
  };
}

/** A text of one length, whatever is entered. */
const keyOf = (email: string): string => createHash('sha256').update(email).digest('base64url');

export type SignInLimit = ReturnType<typeof createSignInLimit>;
