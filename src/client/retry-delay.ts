import type { RetrySettings } from './options.ts';

/** Nobody says that it was done; with a key it can be asked again. */
const TRANSIENT: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** @returns how long to wait before the next attempt, in milliseconds; undefined where this answer is the caller's */
export async function retryDelay(
  response: Response,
  attempt: number,
  settings: RetrySettings,
): Promise<number | undefined> {
  const { status, headers } = response;
  // The kept outcome stays what it is, a 503 too.
  if (headers.get('idempotency-replayed') === 'true') return undefined;
  const afterMs = retryAfterMs(headers);
  if (status === 409) {
    // Without a time to come back it is an outcome that nobody knows: asking again changes nothing.
    if (afterMs === undefined || (await typeOf(response)) !== 'errors/conflict') return undefined;
  } else if (!TRANSIENT.has(status)) return undefined;
  if (afterMs === undefined) return settings.backoff(attempt);
  return afterMs > settings.maxRetryAfterMs ? undefined : afterMs + settings.spread();
}

/** Seconds, or a date, which is compared with the server's own clock only. */
function retryAfterMs(headers: Headers): number | undefined {
  const value = headers.get('retry-after');
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  const ms = Date.parse(value) - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** `type` of an error object. The answer can still be read afterwards. */
async function typeOf(response: Response): Promise<unknown> {
  try {
    const problem: unknown = await response.clone().json();
    return typeof problem === 'object' && problem !== null ? Reflect.get(problem, 'type') : undefined;
  } catch {
    return undefined;
  }
}
