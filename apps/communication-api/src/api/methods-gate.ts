import type { FastifyRequest } from 'fastify';
import { createGate, type Gate } from 'headgate';
import { routeOf } from 'headgate/fastify';
import { createProblem, type Fingerprint, problemReply, readIdempotencyKey } from 'headgate/http';
import type { KeptResult, Reconciled } from 'headgate/idempotency';
import type { Account } from '../accounts/accounts.ts';
import { newId } from '../domain/ids.ts';
import { keyName } from '../domain/key-name.ts';
import { RETRY_SECONDS, ServiceError } from '../domain/service-error.ts';
import { claimKeyOf, publishStep } from '../journal/claims.ts';
import { VERDICTS } from '../journal/send-outcome.ts';
import { limitProvider } from '../limits/account-limits.ts';
import type { Rooms } from '../rooms.ts';
import { callerOf } from './authenticate.ts';
import type { Intake } from './emails/intake.ts';
import { problemOf } from './problem.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The account that a request of the Methods API is for. */
    account: Account | null;
    intake: Intake | null;
    /** The send, and the name of its idempotency key if it has one. */
    send: { readonly id: string; readonly idempotencyKey: string | null } | null;
    /** Why it is not known what became of an earlier attempt. */
    unknownOutcome: ServiceError | null;
    /** The handler's work, while it runs. */
    sending: Promise<unknown> | null;
    /** Work for the time when the answer is sent, so the outcome is stored. */
    afterwards: (() => Promise<void>)[];
  }
}

/** How long the claim of a request without a key is stored: no retry asks for it. */
const UNKEYED_RETENTION_MS = 60_000;

/** The one gate in front of all routes of the Methods API: idempotency keys first, then the limits of the account. */
export function createMethodsGate(rooms: Rooms): Gate<FastifyRequest> {
  const { limiter, idempotency, metrics, clock } = rooms;
  return createGate<FastifyRequest>({
    limiter,
    idempotency,
    onEvent: metrics.onGate,
    route: routeOf,
    account: ({ account }) => account?.id,
    // The handler's own 429 is the provider's. If that says for how long, no process asks for this account before.
    cooldown: { scope: 'account' },
    providerAnswers: ({ header }) => header('retry-after') !== undefined && 'pass',
    provider: ({ account }) => (account === null ? undefined : limitProvider(account.application_id, account.provider)),
    // A request without a key has a claim, too: so a crash is one case, and not two.
    idempotent: (request) => {
      const key = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'] ?? []);
      if (typeof key === 'object') return key;
      publishStep('asked');
      const { applicationId: scope, scopeId } = callerOf(request);
      const id = newId('eml', clock());
      const idempotencyKey = key === undefined ? null : keyName(scopeId, key);
      request.send = { id, idempotencyKey };
      return {
        ...{ scope, key: claimKeyOf(idempotencyKey, id), fingerprint: fingerprintOf(request), dispatch: 'explicit' },
        ...(key === undefined ? { retentionMs: UNKEYED_RETENTION_MS } : {}),
        reconcile: ({ key: name }) => resume(rooms, request, name),
      };
    },
    answer: (problem, { request, requestId, decision, headers }) => {
      // It may replace an answer of the handler, with its fields.
      const fields: Record<string, string> = { 'x-request-id': requestId };
      // The database does not answer, for keys or limits.
      if (problem.status === 503 && headers['retry-after'] === undefined) fields['retry-after'] = String(RETRY_SECONDS);
      const { unknownOutcome } = request;
      if (problem.type === 'errors/conflict' && unknownOutcome !== null) {
        const { retryAfter } = unknownOutcome;
        const after = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
        return problemReply(problemOf(unknownOutcome, requestId), { ...fields, ...after });
      }
      // The specification knows one answer of its limits: 429 with `retry-after`, also for a max of 0. Nobody knows when a
      // request in flight ends, but few take longer than some seconds.
      if (decision?.inFlight !== undefined) return problemReply(problem, { ...fields, 'retry-after': '1' });
      if (problem.type !== 'api/cost_exceeds_limit') return problemReply(problem, fields);
      return problemReply(createProblem(429, 'api/too_many_requests', problem.detail, requestId), {
        ...fields,
        'retry-after': String(Math.ceil((decision?.shown?.resetMs ?? 0) / 1_000)),
      });
    },
    // Only a verdict is an outcome. After any other error, a retry sends.
    isOutcome: (status) => status === 201 || VERDICTS.includes(status),
  });
}

/** Finishes an earlier attempt that ended without an outcome. */
async function resume(
  { sends, sender, mailAccounts, providers, metrics }: Rooms,
  request: FastifyRequest,
  key: string,
): Promise<Reconciled<KeptResult>> {
  try {
    const { account } = request;
    const row = account && (await sends.records.byClaim(account.application_id, key));
    // Its attempt wanted to store a verdict: nothing was sent.
    if (account === null || row == null) return { done: false };
    const mail = mailAccounts.mailOf(account, providers.find(account.provider));
    if (mail === undefined) return 'unknown';
    const found = await sender.resume(row, { mail, mailAccount: mailAccounts.of(account) });
    metrics.onSend(account.provider, 'replayed', undefined, 0);
    return found;
  } catch (error) {
    request.unknownOutcome =
      error instanceof ServiceError
        ? error
        : new ServiceError(503, 'errors/service_unavailable', 'The outcome of the email is not known yet. Try again.', {
            ...{ retryAfter: RETRY_SECONDS, cause: error },
          });
    throw error;
  }
}

function fingerprintOf({ intake, account }: FastifyRequest): Fingerprint {
  if (intake === null) throw new Error('The route does not read its body through the intake.');
  return intake.fingerprinter.fingerprint(account?.id);
}
