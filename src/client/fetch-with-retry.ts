/**
 * For clients of an API that supports idempotency keys: one call, one key, several attempts. It needs only Web APIs.
 * @module headgate/client
 */

import { OptionError } from '../base/errors.ts';
import { BodyNotReplayableError, RequestFailedError } from './errors.ts';
import { type ClientTimers, type RetryOptions, type RetrySettings, retrySettings } from './options.ts';
import { retryDelay } from './retry-delay.ts';

export { isHeadgateError, OptionError } from '../base/errors.ts';
export { BodyNotReplayableError, RequestFailedError } from './errors.ts';
export type { ClientTimers, Retry, RetryOptions } from './options.ts';

/**
 * `fetch` with an idempotency key. Every attempt sends the same key, so a request whose response was lost can be sent
 * again without being executed twice.
 *
 * An attempt is retried if it got no response, a 429, 502, 503 or 504, or a 409 `errors/conflict` with `retry-after`. A
 * retry never comes before the end of `retry-after`. Every other response is returned: a 409 `errors/already_used`
 * needs a new key, any other 4xx needs a new request, and a replayed response is final.
 * @param init as for `fetch`; the body must be one that can be sent more than once
 * @returns the last response, whatever its status; check `response.ok`
 * @throws RequestFailedError if the last attempt got no response; it names the key with which to try again later
 * @throws BodyNotReplayableError, OptionError, and the reason of `init.signal` if that is aborted
 * @example
 * ```ts
 * const response = await fetchWithRetry('https://api.example/emails', { method: 'POST', body }, { key: job.id });
 * ```
 */
export async function fetchWithRetry(
  input: string | URL,
  init: RequestInit = {},
  options: RetryOptions = {},
): Promise<Response> {
  // A request of which an attempt read the body cannot be sent again.
  if (typeof input !== 'string' && !(input instanceof URL))
    throw new OptionError('input', input, 'must be a URL: pass the method, the headers and the body in init');
  const headers = new Headers(init.headers);
  const settings = retrySettings(options, headers);
  if (!isReplayable(init.body)) throw new BodyNotReplayableError();
  headers.set('idempotency-key', settings.key);
  // Throws now what `fetch` would throw on every attempt.
  new Request(input, { ...init, headers });
  for (let attempt = 1; ; attempt++) {
    const { stopTimer, ...result } = await attemptOnce(input, { ...init, headers }, settings);
    const delayMs =
      'response' in result ? await retryDelay(result.response, attempt, settings) : settings.backoff(attempt);
    stopTimer();
    if (attempt > settings.retries || delayMs === undefined) {
      if ('response' in result) return result.response;
      throw new RequestFailedError(settings.key, attempt, result.error);
    }
    settings.onRetry?.({ key: settings.key, attempt, delayMs, ...result });
    // This response will not be read. Cancelling it frees the connection for the next attempt.
    if ('response' in result) await result.response.body?.cancel().catch(() => {});
    await sleep(settings.timers, delayMs, init.signal ?? undefined);
  }
}

type Attempt = { readonly stopTimer: () => void } & ({ readonly response: Response } | { readonly error: unknown });

/** @throws the reason of the caller's signal; the attempt's own timeout counts as a network error */
async function attemptOnce(
  input: string | URL,
  init: RequestInit,
  { fetch, timers, attemptTimeoutMs }: RetrySettings,
): Promise<Attempt> {
  init.signal?.throwIfAborted();
  const { signal, stopTimer } = signalWithTimeout(timers, attemptTimeoutMs, init.signal ?? undefined);
  try {
    return { response: await fetch(input, { ...init, signal }), stopTimer };
  } catch (error) {
    stopTimer();
    init.signal?.throwIfAborted();
    return { error, stopTimer };
  }
}

/** Whether `fetch` can send the body more than once. A stream, for example, can be read only once. */
function isReplayable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string') return true;
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return true;
  return body instanceof Blob || body instanceof FormData || body instanceof URLSearchParams;
}

/** @throws the reason of the signal, if that is aborted first */
function sleep(timers: ClientTimers, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = timers.after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * A signal that is aborted by `outer`, and after `ms` unless `stopTimer` was called. The caller stops the timer before
 * it returns the response, so that reading the body may take longer.
 */
function signalWithTimeout(timers: ClientTimers, ms: number, outer: AbortSignal | undefined) {
  const controller = new AbortController();
  const stopTimer = timers.after(ms, () => {
    controller.abort(new DOMException(`no response within ${ms} ms`, 'TimeoutError'));
  });
  const signal = outer === undefined ? controller.signal : AbortSignal.any([outer, controller.signal]);
  return { signal, stopTimer };
}
