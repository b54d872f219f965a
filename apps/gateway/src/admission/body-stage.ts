import type { ServerResponse } from 'node:http';
import type { IdempotentRequest } from 'headgate/gate';
import { isBodyError, type KeyFault, readIdempotencyKey } from 'headgate/http';
import { comparedFields, digestText, fieldValues, forEachField, joinedField } from 'headgate/internal';
import { readBody } from '../body/read-body.ts';
import { isConsumer } from '../config/account-source.ts';
import type { Route } from '../config/routes.ts';
import { hasBody } from '../exchange/answers.ts';
import { attachBody, type Exchange } from '../exchange/exchange.ts';
import { isRefusal, type Refusal, refuse, refuseBody } from '../exchange/refusal.ts';
import type { Accounts } from './accounts.ts';
import type { ApiKey } from './keys.ts';
import type { Target } from './target.ts';
import { BudgetSpent, type WorkBudget } from './work-budget.ts';

/** Results of the earlier stages. */
export interface AdmittedHead {
  readonly route: Route;
  readonly key: ApiKey;
  readonly target: Target;
}

/** Options of {@link createBodyStage}. */
export interface BodyStageOptions {
  readonly accounts: Accounts;
  /** In bytes. */
  readonly maxBodyBytes: number;
  /** Longest wait for the next piece of a body, in milliseconds. */
  readonly clientTimeoutMs: number;
  readonly workBudget: WorkBudget;
  /** Key of the HMAC of fingerprints. */
  readonly fingerprintSecret?: string | undefined;
  /** Is called with each request that has an idempotency key, if its route is not idempotent and does not say so. */
  readonly onIgnoredKey?: ((route: Route) => void) | undefined;
}

/**
 * Reads a body once, if the account is in it or if an idempotency key needs its fingerprint. Stores the body for the
 * upstream, and puts account, key and fingerprint on the exchange. All other bodies are streamed.
 */
export function createBodyStage(options: BodyStageOptions) {
  const { accounts, maxBodyBytes, clientTimeoutMs, workBudget, fingerprintSecret, onIgnoredKey } = options;
  return (exchange: Exchange, head: AdmittedHead): Promise<Refusal | undefined> | Refusal | undefined => {
    const { rawHeaders, headers } = exchange.request;
    if (isForged(rawHeaders)) return FORGED;
    const { route } = head;
    const { idempotent, ignoresKeys } = route;
    if (!(idempotent || ignoresKeys) && headers['idempotency-key'] !== undefined) onIgnoredKey?.(route);
    const isInBody = route.source?.place === 'body';
    const key =
      route.idempotent === undefined ? undefined : readIdempotencyKey(fieldValues(rawHeaders, 'idempotency-key'));
    const badKey = key === undefined && route.idempotent?.required ? MISSING_KEY : refusalOfKey(key);
    if (!isInBody && (badKey !== undefined || key === undefined)) return badKey;
    return read(exchange, head, typeof key === 'string' ? key : undefined).then(
      (id) => {
        const account = isInBody ? accounts.access(id as string, head.key) : exchange.account;
        if (isRefusal(account)) return account;
        exchange.account = account;
        return badKey;
      },
      (error: unknown) => {
        if (isBodyError(error)) return refuseBody(error);
        if (error instanceof BudgetSpent) return budgetSpent(error);
        throw error;
      },
    );
  };

  /** @returns the account's id, if it is in the body */
  async function read(exchange: Exchange, { route, key: apiKey, target }: AdmittedHead, key: string | undefined) {
    const { request, response } = exchange;
    const { rawHeaders } = request;
    const work = workBudget.meter(apiKey.application);
    exchange.bodyWork = work;
    if (response.closed) work.end();
    else response.once('close', () => work.end());
    const { retryAfter } = work;
    // Before `100 Continue`, so that the body need not be sent.
    if (retryAfter !== undefined && hasBody(request.headers)) throw new BudgetSpent(retryAfter);
    const { body, field, fingerprint } = await readBody(request, {
      head: {
        method: exchange.method,
        path: target.path,
        query: target.query,
        contentType: request.headers['content-type'],
        contentEncoding: request.headers['content-encoding'],
        compares: comparedFields(key === undefined ? [] : (route.idempotent?.compares ?? []), (name) =>
          joinedField(rawHeaders, name),
        ),
      },
      maxBytes: maxBodyBytes,
      idleMs: clientTimeoutMs,
      buffer: exchange.buffer,
      onRead: () => {
        if (exchange.expectsContinue) response.writeContinue();
      },
      field: route.source?.place === 'body' ? route.source.name : undefined,
      fingerprint: key === undefined ? undefined : { secret: fingerprintSecret },
      run: (piece) => work.run(piece),
    });
    attachBody(exchange, body);
    // If the request names no account, keys of different scopes are different callers. A retry may come with a new key,
    // or from another address.
    const named = isConsumer(route.source?.place) ? undefined : exchange.account?.id;
    const print = await work.run(() => fingerprint(field ?? named ?? apiKey.scope ?? undefined));
    if (key !== undefined && print !== undefined && route.idempotent !== undefined) {
      const scope = apiKey.application;
      const { settings } = route.idempotent;
      exchange.idempotent = {
        request: { scope, key, fingerprint: print, signal: departureSignal(response), reconcile, ...settings },
        forwardedKey: forwardedKey({ scope, key }),
      };
    }
    return field;
  }
}

/** Aborted if the client leaves before it receives its answer. */
export function departureSignal(response: ServerResponse): AbortSignal {
  return new Departure(response) as unknown as AbortSignal;
}

/** What a wait reads of a signal. An AbortController per request would cost more than the claim of its key. */
class Departure {
  readonly #listeners = new Map<unknown, () => void>();

  constructor(private readonly response: ServerResponse) {}

  get aborted(): boolean {
    return this.response.closed && !this.response.writableFinished;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    const onClose = (): void => {
      if (this.aborted) listener();
    };
    this.#listeners.set(listener, onClose);
    this.response.once('close', onClose);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const onClose = this.#listeners.get(listener);
    if (onClose !== undefined) this.response.off('close', onClose);
  }
}

export const MISSING_KEY = refuse(
  400,
  'errors/missing_idempotency_key',
  'This operation needs the header Idempotency-Key: send a random UUID, and the same one with each retry.',
);

function refusalOfKey(key: string | KeyFault | undefined): Refusal | undefined {
  return typeof key === 'object' ? refuse(422, 'errors/unprocessable_entity', key.detail) : undefined;
}

function budgetSpent({ retryAfter }: BudgetSpent): Refusal {
  const detail = `Too much work on bodies of requests that were then refused: try again in ${retryAfter} s.`;
  return { retryAfter, ...refuse(429, 'api/too_many_requests', detail) };
}

/** Prefix of every key that the gateway sends to the upstream. */
const FORWARDED_PREFIX = 'headgate-';
const FORGED = refuse(
  422,
  'errors/unprocessable_entity',
  `An idempotency key must not begin with ${FORWARDED_PREFIX}: the gateway uses such keys itself.`,
);

/**
 * Otherwise a client could send the key that the gateway derives for another application to the upstream. Many servers
 * take a header that is written with an underscore for the same header.
 */
function isForged(rawHeaders: readonly string[]): boolean {
  let found = false;
  forEachField(rawHeaders, (_name, value, lowerName) => {
    found ||= value.startsWith(FORWARDED_PREFIX) && lowerName.replaceAll('_', '-') === 'idempotency-key';
  });
  return found;
}

/** The process cannot find out an orphan's outcome, so its retries get 409 (I9). */
export const reconcile = (): 'unknown' => 'unknown';

/**
 * The same on every attempt, so that a provider that knows idempotency keys can use it. Different for every
 * application.
 */
export function forwardedKey({ scope, key }: Pick<IdempotentRequest, 'scope' | 'key'>): string {
  return FORWARDED_PREFIX + digestText(JSON.stringify([scope, key]));
}
