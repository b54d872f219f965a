import type { RetrySettings } from './options.ts';

/** Responses that do not say that the operation was executed. With a key, it is safe to send the request again. */
const TRANSIENT: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** @returns milliseconds until the next attempt; undefined if this response is returned to the caller */
export async function retryDelay(
  response: Response,
  attempt: number,
  settings: RetrySettings,
): Promise<number | undefined> {
  const { status, headers } = response;
  // A stored outcome does not change, not even a 503.
  if (headers.get('idempotency-replayed') === 'true') return undefined;
  const afterMs = retryAfterMs(headers);
  if (status === 409) {
    // Without retry-after the outcome is unknown to the server too, so another attempt would get the same response.
    if (afterMs === undefined || (await problemType(response)) !== 'errors/conflict') return undefined;
  } else if (!TRANSIENT.has(status)) return undefined;
  if (afterMs === undefined) return settings.backoff(attempt);
  return afterMs > settings.maxRetryAfterMs ? undefined : afterMs + settings.jitter();
}

/** Every form of a date in HTTP begins so (RFC 9110, 5.6.7). `Date.parse` also takes `1.5` and `-1` for dates. */
const DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/;

/**
 * `retry-after` is a number of seconds, of which some servers send fractions, or a date. A date is compared only with
 * the server's own clock, its `date` header.
 */
function retryAfterMs(headers: Headers): number | undefined {
  const value = headers.get('retry-after');
  if (value === null) return undefined;
  if (/^\d{1,9}(?:\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1_000);
  if (!DATE.test(value)) return undefined;
  const ms = Date.parse(value) - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** The `type` of an error object. The response can still be read afterwards. */
async function problemType(response: Response): Promise<unknown> {
  try {
    const problem: unknown = await response.clone().json();
    return typeof problem === 'object' && problem !== null ? Reflect.get(problem, 'type') : undefined;
  } catch {
    return undefined;
  }
}
