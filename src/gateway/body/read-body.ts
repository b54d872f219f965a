import { createHash } from 'node:crypto';
import type { IdempotentRequest } from '../../gate/idempotent-request.ts';
import { type BodyError, isBodyError } from '../../http/body-error.ts';
import { readIdempotencyKey } from '../../http/idempotency-key.ts';
import type { Account, Accounts } from '../admission/accounts.ts';
import type { ApiKey } from '../admission/keys.ts';
import type { Route } from '../admission/routes.ts';
import type { Target } from '../admission/target.ts';
import { type Exchange, holdBody } from '../exchange/exchange.ts';
import { isRefusal, type Refusal, refuse } from '../exchange/refusal.ts';
import { takeIn } from './intake.ts';

/** What is taken out of a request whose body must be read before it goes on. */
export interface IntakeRequest {
  readonly route: Route;
  readonly key: ApiKey;
  readonly target: Target;
  /** Where it does not stand in the body. */
  readonly account: Account | undefined;
}

/** Options of {@link createIntake}. */
export interface IntakeOptions {
  readonly accounts: Accounts;
  /** In bytes. */
  readonly maxBodyBytes: number;
}

/**
 * Reads a body once, where the account stands in it or an idempotency key makes it count: stores it for the upstream, and notes account, key and
 * fingerprint on the exchange. Bodies of other requests are left alone, to be streamed.
 */
export function createIntake({ accounts, maxBodyBytes }: IntakeOptions) {
  return (exchange: Exchange, request: IntakeRequest): Promise<Refusal | undefined> | Refusal | undefined => {
    const { route, account } = request;
    if (isForged(exchange)) return FORGED;
    const isInBody = route.source?.place === 'body';
    const key = route.idempotent === undefined ? undefined : readIdempotencyKey(valuesOf(exchange, 'idempotency-key'));
    const fault = typeof key === 'object' ? refuse(422, 'errors/unprocessable_entity', key.detail) : undefined;
    if (!isInBody) {
      if (fault !== undefined) return fault;
      if (key === undefined) return undefined;
    }
    return take(exchange, request, typeof key === 'string' ? key : undefined).then(
      (id) => {
        const found = isInBody ? accounts.access(id as string, request.key) : account;
        if (isRefusal(found)) return found;
        exchange.account = found;
        return fault;
      },
      (error: unknown) => {
        if (isBodyError(error)) return refusalOf(error);
        throw error;
      },
    );
  };

  /** @returns the account's id, where it stands in the body */
  async function take(
    exchange: Exchange,
    { route, key: apiKey, target, account }: IntakeRequest,
    key: string | undefined,
  ) {
    const { request, response } = exchange;
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const intake = await takeIn(request, {
      head: {
        method: request.method ?? '',
        path: target.path,
        query: target.query,
        contentType: request.headers['content-type'],
        contentEncoding: request.headers['content-encoding'],
      },
      maxBytes: maxBodyBytes,
      signal: gone.signal,
      onRead: () => {
        if (exchange.expectsContinue) response.writeContinue();
      },
      field: route.source?.place === 'body' ? route.source.name : undefined,
      fingerprint: key === undefined ? undefined : {},
    });
    holdBody(exchange, intake.body);
    const fingerprint = intake.fingerprint(intake.field ?? account?.id);
    if (key !== undefined && fingerprint !== undefined && route.idempotent !== undefined) {
      const { lateAnswerMs: _, ...settings } = route.idempotent;
      const keyed = { ...settings, scope: apiKey.application, key, fingerprint, signal: gone.signal, reconcile };
      exchange.idempotent = { request: keyed, forwardedKey: forwardedKey(keyed) };
    }
    return intake.field;
  }
}

/** In front of every key that the upstream sees from us. */
const FORWARDED_PREFIX = 'headgate-';
const FORGED = refuse(
  422,
  'errors/unprocessable_entity',
  `An idempotency key must not begin with ${FORWARDED_PREFIX}: such keys are the gateway's own.`,
);

/** Another application's derived key would reach the upstream; to many servers a name with an underscore is the same name. */
function isForged({ request: { rawHeaders } }: Exchange): boolean {
  return rawHeaders.some(
    (value, i) =>
      i % 2 === 1 &&
      value.startsWith(FORWARDED_PREFIX) &&
      rawHeaders[i - 1]?.toLowerCase().replaceAll('_', '-') === 'idempotency-key',
  );
}

/** The process has nobody to ask what became of an orphan: it stays one, answered 409 (I9). */
const reconcile = (): 'unknown' => 'unknown';

/** The same on every attempt, so that a provider that knows keys can fence as well; another application's never is. */
function forwardedKey({ scope, key }: IdempotentRequest): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([scope, key]))
    .digest('base64url');
  return FORWARDED_PREFIX + digest;
}

/** Every value of a header, as it came: Node joins those of most names, and drops others. */
export function valuesOf({ request: { rawHeaders } }: Exchange, name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
}

function refusalOf({ status, message }: BodyError): Refusal {
  switch (status) {
    case 400:
      return refuse(400, 'errors/malformed_request', message);
    case 408:
      return refuse(408, 'errors/request_timeout', message);
    case 413:
      return refuse(413, 'errors/payload_too_large', message);
    case 422:
      return refuse(422, 'errors/unprocessable_entity', message);
    case 500:
      return refuse(500, 'errors/unexpected_error', 'Something of ours broke; the log has more under this req_id.');
    case 503:
      return refuse(503, 'errors/service_unavailable', message);
  }
}
