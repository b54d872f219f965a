import { retryAfterMs } from '../http/retry-after.ts';
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
  // A date is compared only with the server's own clock.
  const afterMs = retryAfterMs((name) => headers.get(name));
  if (status === 409) {
    // Without retry-after the outcome is unknown to the server too, so another attempt would get the same response.
    if (afterMs === undefined || (await problemType(response)) !== 'errors/conflict') return undefined;
  } else if (!TRANSIENT.has(status)) return undefined;
  if (afterMs === undefined) return settings.backoff(attempt);
  return afterMs > settings.maxRetryAfterMs ? undefined : afterMs + settings.jitter();
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
