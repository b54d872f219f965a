import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { createLimiter, type Decision, type Limiter, StoreFullError } from 'headgate';
import { createClientIp } from 'headgate/client-ip';
import { ServiceError } from '../domain/service-error.ts';
import { createLimitStore } from '../limits/limiter.ts';
import type { Rooms } from '../rooms.ts';

/** Forms that an address may send without being signed in. */
const OF_ADDRESS = ['20/1m', '200/1h'];
/** Passwords that may be tried for one login, from all addresses together. */
const OF_LOGIN = ['10/5m', '100/1d'];
/** Codes that may be tried for one member: a code has six digits only. */
const OF_CODES = ['5/5m', '30/1d'];
const ROUTE = 'sign in';

/**
 * Counts the attempts: forms without a session by address, passwords by login, and codes by member. All processes count together in
 * Redis. Without it, or while it does not answer, each process counts for itself, so nothing is ever uncounted.
 */
export function createSignInLimit({ config, redis, log }: Pick<Rooms, 'config' | 'redis' | 'log'>) {
  const trustedProxies = config.TRUSTED_PROXIES;
  const clientIp = createClientIp(trustedProxies.length === 0 ? {} : { trustedProxies });
  const addresses = createLimiter({
    store: createLimitStore(redis, log, 'ca-forms'),
    limits: { allMethods: OF_ADDRESS },
  });
  const logins = createLimiter({
    store: createLimitStore(redis, log, 'ca-passwords'),
    limits: { allMethods: OF_LOGIN },
  });

  const codes = createLimiter({
    store: createLimitStore(redis, log, 'ca-codes'),
    limits: { allMethods: OF_CODES },
  });

  async function consume(limiter: Limiter, account: string): Promise<void> {
    const { accepted, shown } = await decide(limiter, account);
    if (!accepted)
      throw new ServiceError(429, 'api/too_many_requests', 'Too many attempts. Wait, then try again.', {
        retryAfter: Math.max(1, Math.ceil((shown?.resetMs ?? 60_000) / 1_000)),
      });
  }

  const addressOf = ({ socket, headers }: FastifyRequest): string | undefined =>
    clientIp(socket.remoteAddress, headers);

  async function forget(limiter: Limiter, account: string): Promise<void> {
    try {
      await limiter.reset({ account, route: ROUTE });
    } catch (error) {
      // The person entered the right one, so an outage of the counters must not prevent the login.
      log.warn({ err: error }, 'the attempts of a login were not forgotten');
    }
  }

  return {
    /** The address of a client. */
    addressOf,
    /** @throws ServiceError 429 */
    checkAddress: (request: FastifyRequest): Promise<void> => consume(addresses, addressOf(request) ?? 'unknown'),
    /**
     * To be called before a password is compared.
     * @throws ServiceError 429
     */
    checkLogin: (email: string): Promise<void> => consume(logins, keyOf(email)),
    /** The password was right: earlier attempts no longer count. */
    forgive: (email: string): Promise<void> => forget(logins, keyOf(email)),
    /**
     * To be called before a code is compared.
     * @throws ServiceError 429
     */
    checkCode: (memberId: string): Promise<void> => consume(codes, memberId),
    /** The code was right: earlier attempts no longer count. */
    forgiveCode: (memberId: string): Promise<void> => forget(codes, memberId),
    close: async (): Promise<void> => void (await Promise.all([addresses.close(), logins.close(), codes.close()])),
  };
}

/** A text of one length, whatever is entered. */
const keyOf = (email: string): string => createHash('sha256').update(email).digest('base64url');

async function decide(limiter: Limiter, account: string): Promise<Decision> {
  try {
    return await limiter.consume({ account, route: ROUTE });
  } catch (error) {
    if (!(error instanceof StoreFullError)) throw error;
    throw new ServiceError(503, 'errors/service_unavailable', 'Too many clients at a time.', { retryAfter: 60 });
  }
}

export type SignInLimit = ReturnType<typeof createSignInLimit>;
