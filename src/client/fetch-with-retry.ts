/**
 * For clients of an API that knows idempotency keys: one call, one key, as many attempts as it takes. Web APIs only.
 * @module headgate/client
 */

import { isReplayable } from './body.ts';
import { BodyNotReplayableError, RequestFailedError } from './errors.ts';
import { type RetryOptions, type RetrySettings, retrySettings } from './options.ts';
import { retryDelay } from './retry-delay.ts';
import { abortable, sleep } from './time.ts';

export { isHeadgateError, OptionError } from '../core/errors.ts';
export { BodyNotReplayableError, RequestFailedError } from './errors.ts';
export type { ClientTimers, Retry, RetryOptions } from './options.ts';

/**
 * `fetch` with an idempotency key: the same on every attempt, so that an attempt whose answer was lost can be made again without being
 * carried out again. Tried again: no answer, 429, 502, 503, 504, and 409 `errors/conflict` that says when; not sooner than `retry-after`
 * says. Everything else is the caller's: 409 `errors/already_used` needs a new key, any other 4xx a new request, and an answer that is a
 * replay is final.
 * @param init as for `fetch`; its body must be one that can be sent again
 * @returns the last answer, whatever its status; `response.ok` is still yours to look at
 * @throws RequestFailedError where the last attempt had no answer: it has the key, with which to go on later; BodyNotReplayableError, OptionError,
 * and the reason of `init.signal`
 * @example
 * ```ts
 * const response = await fetchWithRetry('https://api.example/api/v1/emails', { method: 'POST', body }, { key: job.id });
 * ```
 */
export async function fetchWithRetry(
  input: string | URL,
  init: RequestInit = {},
  options: RetryOptions = {},
): Promise<Response> {
  const headers = new Headers(init.headers);
  const settings = retrySettings(options, headers);
  if (!isReplayable(init.body)) throw new BodyNotReplayableError();
  headers.set('idempotency-key', settings.key);
  // What `fetch` would refuse each time is refused once.
  new Request(input, { ...init, headers });
  for (let attempt = 1; ; attempt++) {
    const { release, ...outcome } = await attemptOnce(input, { ...init, headers }, settings);
    const delayMs =
      'response' in outcome ? await retryDelay(outcome.response, attempt, settings) : settings.backoff(attempt);
    release();
    if (attempt > settings.retries || delayMs === undefined) {
      if ('response' in outcome) return outcome.response;
      throw new RequestFailedError(settings.key, attempt, outcome.error);
    }
    settings.onRetry?.({ key: settings.key, attempt, delayMs, ...outcome });
    // Nobody reads it: its connection is to be free for the next attempt.
    if ('response' in outcome) await outcome.response.body?.cancel().catch(() => {});
    await sleep(settings.timers, delayMs, init.signal ?? undefined);
  }
}

type Attempt = { readonly release: () => void } & ({ readonly response: Response } | { readonly error: unknown });

/** @throws the reason of the caller's signal; a time-out of our own is an error like any other of the network's */
async function attemptOnce(
  input: string | URL,
  init: RequestInit,
  { fetch, timers, attemptTimeoutMs }: RetrySettings,
): Promise<Attempt> {
  init.signal?.throwIfAborted();
  const { signal, release } = abortable(timers, attemptTimeoutMs, init.signal ?? undefined);
  try {
    return { response: await fetch(input, { ...init, signal }), release };
  } catch (error) {
    release();
    init.signal?.throwIfAborted();
    return { error, release };
  }
}
