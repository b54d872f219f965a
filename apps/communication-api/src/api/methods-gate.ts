import type { FastifyRequest } from 'fastify';
import { createGate, type Gate } from 'headgate';
import { routeOf } from 'headgate/fastify';
import { readIdempotencyKey } from 'headgate/http';
import type { Account } from '../accounts/accounts.ts';
import { limitProvider } from '../limits/book.ts';
import type { Rooms } from '../rooms.ts';
import { callerOf } from './authenticate.ts';
import type { Intake } from './emails/intake.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The account that a request of the Methods API is for. */
    account: Account | null;
    intake: Intake | null;
    /** The handler's work, while it runs. */
    sending: Promise<unknown> | null;
  }
}

/** The one gate in front of all routes of the Methods API: idempotency keys first, then the limits of the account. */
export function createMethodsGate({ limiter, idempotency }: Rooms): Gate<FastifyRequest> {
  return createGate<FastifyRequest>({
    limiter,
    idempotency,
    route: routeOf,
    account: ({ account }) => account?.id,
    provider: ({ account }) => (account === null ? undefined : limitProvider(account.application_id, account.provider)),
    idempotent: (request) => {
      const key = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'] ?? []);
      if (typeof key !== 'string') return key;
      const { intake, account } = request;
      if (intake === null) throw new Error('The route does not read its body through the intake.');
      return {
        scope: callerOf(request).applicationId,
        key,
        fingerprint: intake.fingerprinter.fingerprint(account?.id),
      };
    },
    // Only a verdict is an outcome. What the journal can settle later is not: it answers the retry.
    isOutcome: (status) => status === 201 || status === 403 || status === 422,
  });
}
