import type { FastifyRequest } from 'fastify';
import { createGate, type Gate } from 'headgate';
import { routeOf } from 'headgate/fastify';
import { createProblem, type Fingerprint, problemReply, readIdempotencyKey } from 'headgate/http';
import type { Account } from '../accounts/accounts.ts';
import { keyName } from '../domain/key-name.ts';
import type { SendResult } from '../journal/send-outcome.ts';
import { limitProvider } from '../limits/account-limits.ts';
import type { Rooms } from '../rooms.ts';
import { callerOf } from './authenticate.ts';
import type { Intake } from './emails/intake.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The account that a request of the Methods API is for. */
    account: Account | null;
    intake: Intake | null;
    /** The outcome of an earlier request with the same idempotency key, if the journal knows it. */
    earlier: Promise<SendResult> | null;
    /** The handler's work, while it runs. */
    sending: Promise<unknown> | null;
  }
}

/** The one gate in front of all routes of the Methods API: idempotency keys first, then the limits of the account. */
export function createMethodsGate({ limiter, idempotency, sender, sends, metrics }: Rooms): Gate<FastifyRequest> {
  return createGate<FastifyRequest>({
    limiter,
    idempotency,
    onEvent: metrics.onGate,
    route: routeOf,
    account: ({ account }) => account?.id,
    provider: ({ account }) => (account === null ? undefined : limitProvider(account.application_id, account.provider)),
    idempotent: (request) => {
      const key = keyOf(request);
      return typeof key !== 'string' ? key : nameAndPrint(request, key);
    },
    // The store of keys may have forgotten an outcome that the journal knows. Such a retry is a replay, which no limit
    // stops.
    cached: async (request) => {
      const key = keyOf(request);
      if (typeof key !== 'string') return false;
      const caller = callerOf(request);
      try {
        const fingerprint = fingerprintOf(request).value;
        const idempotencyKey = await sends.nameOf(caller, key, fingerprint);
        const settled = await sender.settled({ applicationId: caller.applicationId, idempotencyKey, fingerprint });
        if (settled !== undefined) request.earlier = Promise.resolve(settled);
      } catch (error) {
        // The handler answers with it.
        request.earlier = Promise.reject(error);
        request.earlier.catch(() => undefined);
      }
      return request.earlier !== null;
    },
    // The specification knows one answer of its limits: 429 with `retry-after`, also for a max of 0.
    answer: ({ type, detail }, { requestId, headers, decision }) =>
      type !== 'api/cost_exceeds_limit'
        ? undefined
        : problemReply(createProblem(429, 'api/too_many_requests', detail, requestId), {
            ...headers,
            'retry-after': String(Math.ceil((decision?.shown?.resetMs ?? 0) / 1_000)),
          }),
    // Only a verdict is an outcome. An error that the journal can settle later is not: the journal answers the retry.
    isOutcome: (status) => status === 201 || status === 403 || status === 422,
  });
}

function nameAndPrint(request: FastifyRequest, key: string) {
  // The tenant, which shares the room of the store, is the application, whatever the scopes of its keys.
  const { applicationId, scopeId } = callerOf(request);
  return { scope: applicationId, key: keyName(scopeId, key), fingerprint: fingerprintOf(request) };
}

const keyOf = ({ raw }: FastifyRequest) => readIdempotencyKey(raw.headersDistinct['idempotency-key'] ?? []);

function fingerprintOf({ intake, account }: FastifyRequest): Fingerprint {
  if (intake === null) throw new Error('The route does not read its body through the intake.');
  return intake.fingerprinter.fingerprint(account?.id);
}
