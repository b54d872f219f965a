import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { createLimiter, type Decision, type Limiter, StoreFullError } from 'headgate';
import { createClientIp } from 'headgate/client-ip';
import { createMemoryStore } from 'headgate/memory';
import { ServiceError } from '../domain/service-error.ts';

/** Forms that an address may send without being signed in. */
const OF_ADDRESS = ['20/1m', '200/1h'];
/** Passwords that may be tried for one login, from all addresses together. */
const OF_LOGIN = ['10/5m', '100/1d'];
const MAX_KEYS = 65_536;
const ROUTE = 'sign in';

/**
 * Counts what is sent without a session: forms by address, and passwords by login. It counts in this process.
 * @param trustedProxies addresses of the proxies in front
 */
export function createSignInLimit(trustedProxies: readonly string[]) {
  const clientIp = createClientIp(trustedProxies.length === 0 ? {} : { trustedProxies });
  const limiterOf = (allMethods: readonly string[]): Limiter =>
    createLimiter({ store: createMemoryStore({ maxKeys: MAX_KEYS }), limits: { allMethods } });
  const [addresses, logins] = [limiterOf(OF_ADDRESS), limiterOf(OF_LOGIN)];

  function consume(limiter: Limiter, account: string): void {
    const { accepted, shown } = decide(limiter, account);
    if (!accepted)
      throw new ServiceError(429, 'api/too_many_requests', 'Too many attempts. Wait, then try again.', {
        retryAfter: Math.max(1, Math.ceil((shown?.resetMs ?? 60_000) / 1_000)),
      });
  }

  return {
    /** @throws ServiceError 429 */
    checkAddress({ socket, headers }: FastifyRequest): void {
      consume(addresses, clientIp(socket.remoteAddress, headers) ?? 'unknown');
    },
    /**
     * To be called before a password is compared.
     * @throws ServiceError 429
     */
    checkLogin(email: string): void {
      consume(logins, keyOf(email));
    },
    /** The password was right: what was tried before does not count any more. */
    forgive: (email: string): Promise<void> => logins.reset({ account: keyOf(email) }),
    close: async (): Promise<void> => void (await Promise.all([addresses.close(), logins.close()])),
  };
}

/** A text of one length, whatever is entered. */
const keyOf = (email: string): string => createHash('sha256').update(email).digest('base64url');

function decide(limiter: Limiter, account: string): Decision {
  try {
    return limiter.consumeSync({ account, route: ROUTE });
  } catch (error) {
    if (!(error instanceof StoreFullError)) throw error;
    throw new ServiceError(503, 'errors/service_unavailable', 'Too many clients at a time.', { retryAfter: 60 });
  }
}

export type SignInLimit = ReturnType<typeof createSignInLimit>;
