import type { FastifyRequest } from 'fastify';
import { createClientIp } from 'headgate/client-ip';
import { isToken } from '../domain/key-token.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { Caller } from '../keys/keys.ts';
import type { Rooms } from '../rooms.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the hook that {@link authenticator} makes. */
    caller: Caller | null;
    /** Fields that the log line shows beside the route and the caller. */
    logged: Readonly<Record<string, string>> | null;
  }
}

const TOO_MANY = 'Too many requests with a wrong API key came from your address.';

/**
 * A hook that finds the caller by the key in `X-API-KEY`.
 * @throws ServiceError 401, 403 if the scope of the key is disabled, 429 after too many wrong keys of one address
 */
export function authenticator({ keys, clock, config, guards }: Pick<Rooms, 'keys' | 'clock' | 'config' | 'guards'>) {
  const clientIp = createClientIp({ trustedProxies: config.TRUSTED_PROXIES });
  return async (request: FastifyRequest): Promise<void> => {
    const token = request.headers['x-api-key'];
    if (token === undefined || token === '')
      throw new ServiceError(401, 'errors/missing_credentials', 'Send your API key in the header X-API-KEY.');
    // Node joins a repeated field with a comma, which no token contains.
    const caller = typeof token === 'string' && isToken(token) ? await keys.resolve(token) : undefined;
    if (caller === undefined) {
      const { socket, headers } = request;
      await guards.check('wrong key', clientIp(socket.remoteAddress, headers) ?? 'unknown', TOO_MANY);
      throw new ServiceError(
        401,
        'errors/invalid_credentials',
        'The API key is unknown or was revoked. Use a key that exists.',
      );
    }
    if (caller.expiresAt <= clock())
      throw new ServiceError(401, 'api/expired_authorization', 'The API key has expired. Create a new key.');
    if (!caller.scopeIsActive)
      throw new ServiceError(403, 'errors/resource_access_restricted', 'The scope of this API key is disabled.');
    keys.noteUse(caller.keyId);
    request.caller = caller;
  };
}

/** The caller of a request that passed the hook. */
export function callerOf({ caller }: FastifyRequest): Caller {
  if (caller === null) throw new Error('The route lacks the authentication hook.');
  return caller;
}

/**
 * The caller, if it uses a service key.
 * @throws ServiceError 403
 */
export function serviceCallerOf(request: FastifyRequest): Caller {
  const caller = callerOf(request);
  if (caller.role !== 'service')
    throw new ServiceError(403, 'errors/insufficient_permissions', 'Only a service API key may do this.');
  return caller;
}

/**
 * A hook of a route for service keys only. It runs before the fields are checked.
 * @throws ServiceError 403
 */
export async function requireServiceKey(request: FastifyRequest): Promise<void> {
  serviceCallerOf(request);
}
