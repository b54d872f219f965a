import type { IncomingMessage } from 'node:http';
import { parseLimit } from 'headgate';
import { createClientIp } from 'headgate/client-ip';
import { createMemoryStore } from 'headgate/memory';
import { createWindowSet } from 'headgate/stores';
import { bearerTokenOf, createCredentials, isExpired } from '../admission/credentials.ts';
import { type AdminRole, ROLES } from '../config/schema/admin.ts';
import type { AdminToken } from '../config/schema.ts';
import { digestOfToken } from '../config/token-digest.ts';
import { isRefusal, type Refusal, refuse } from '../exchange/refusal.ts';

/** Knows who sends a request to the Admin API. */
export interface Authentication {
  /** The token of a request, or 401, or 429 after too many failures of its address. */
  authenticate(request: IncomingMessage, tokens: readonly AdminToken[]): AdminToken | Refusal;
}

const PROBLEMS = {
  missing: 'The request has no token: send Authorization: Bearer.',
  unknown: 'The token is unknown.',
  expired: 'The token has expired: use its replacement.',
};

/** Unknown tokens per minute of an address, or of a network of IPv6, whose host chooses its addresses freely. */
const FAILURES = createWindowSet([], parseLimit(['10/1m']));
/** How often one of them counts. */
const REPETITIONS = createWindowSet([], parseLimit(['1/1m']));
const NETWORK_BITS = 64;
const ROUTE = 'authentication';

/** @param onFailure is called for each request without a valid token */
export function createAuthentication(onFailure: () => void): Authentication {
  const failures = createMemoryStore();
  const lookUps = new WeakMap<readonly AdminToken[], ReturnType<typeof createCredentials<AdminToken>>>();
  const lookUpIn = (tokens: readonly AdminToken[]) => {
    const known = lookUps.get(tokens) ?? createCredentials(tokens, PROBLEMS, Date.now);
    lookUps.set(tokens, known);
    return known;
  };
  return {
    authenticate(request, tokens) {
      const client = clientOf(request);
      const waitMs = failures.peek(client, ROUTE, FAILURES).find(({ remaining }) => remaining === 0)?.resetMs;
      if (waitMs !== undefined) {
        const detail = 'This address has sent too many unknown tokens: wait for the time that retry-after says.';
        return { ...refuse(429, 'api/too_many_requests', detail), retryAfter: Math.ceil(waitMs / 1_000) };
      }
      const given = bearerTokenOf(request) ?? '';
      const token = lookUpIn(tokens)(given);
      if (!isRefusal(token)) return token;
      onFailure();
      // Only an unknown token can be a guess. Any page can make the operator's browser send requests without a token, and
      // an open console goes on with an expired one. Neither may lock the operators of the address out.
      if (token.type !== 'errors/invalid_credentials') return token;
      try {
        // To repeat a token is no new guess: a reload has removed it, and consoles and scripts still send it.
        const isGuess = failures.consume(`${client} ${digestOfToken(given)}`, ROUTE, REPETITIONS, 1).accepted;
        if (isGuess) failures.consume(client, ROUTE, FAILURES, 1);
      } catch {
        // The store is full. A client with so many addresses is not stopped by a bound per address.
      }
      return token;
    },
  };
}

/** 403 if the role of a token is less than the needed role. */
export function refuseRole(token: AdminToken, needed: AdminRole): Refusal | undefined {
  if (ROLES.indexOf(token.role) >= ROLES.indexOf(needed)) return undefined;
  return refuse(403, 'errors/insufficient_permissions', `This needs the role ${needed}; the token has ${token.role}.`);
}

/** Whether an admitted token is still in the current config, is not expired, and grants the needed role. */
export function isStillPermitted({ sha256 }: AdminToken, needed: AdminRole, tokens: readonly AdminToken[]): boolean {
  const token = tokens.find((each) => each.sha256 === sha256);
  return token !== undefined && refuseRole(token, needed) === undefined && !isExpired(token, Date.now());
}

const networkOf = createClientIp({ ipv6Prefix: NETWORK_BITS, validate: false });

function clientOf({ socket }: IncomingMessage): string {
  return networkOf(socket.remoteAddress, {}) ?? socket.remoteAddress ?? '';
}
