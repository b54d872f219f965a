import { OptionError } from '../core/errors.ts';
import { checkOptions } from '../core/options.ts';

/** Calls back once, after some milliseconds; the returned function cancels. */
export interface ClientTimers {
  /** Calls later, once; what it returns calls that off. */
  after(ms: number, call: () => void): () => void;
}

/** An attempt is about to be made again. */
export interface Retry {
  readonly key: string;
  /** Which attempt it was, from 1. */
  readonly attempt: number;
  /** Until the next one, in milliseconds. */
  readonly delayMs: number;
  /** What it was answered, if it was. Not to be read from. */
  readonly response?: Response;
  /** Why it had no answer. */
  readonly error?: unknown;
}

/** Options of `fetchWithRetry`. */
export interface RetryOptions {
  /**
   * 1 to 255 printable ASCII characters, without a space at either end. One that is stored with the job before the first attempt survives the
   * process. `init.headers` may have it instead.
   * @default a random UUID
   */
  readonly key?: string | undefined;
  /**
   * Most attempts behind the first one.
   * @default 5
   */
  readonly retries?: number | undefined;
  /**
   * First wait where no `retry-after` says how long, in milliseconds; doubles with each attempt. Half of it is left to chance.
   * @default 500
   */
  readonly minDelayMs?: number | undefined;
  /**
   * Longest such wait, in milliseconds.
   * @default 15_000
   */
  readonly maxDelayMs?: number | undefined;
  /**
   * Longest `retry-after` that is waited for, in milliseconds; an answer that asks for more is given to the caller, who may have better to do.
   * @default 60_000
   */
  readonly maxRetryAfterMs?: number | undefined;
  /**
   * Longest wait for the head of an answer, in milliseconds.
   * @default 60_000
   */
  readonly attemptTimeoutMs?: number | undefined;
  /** Hears of each attempt that is made again. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** @default globalThis.fetch */
  readonly fetch?: ((input: string | URL, init: RequestInit) => Promise<Response>) | undefined;
  /**
   * Time, for tests.
   * @default the platform's
   */
  readonly timers?: ClientTimers | undefined;
  /**
   * From 0 up to 1, for tests.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
}

/** {@link RetryOptions}, complete. */
export interface RetrySettings {
  readonly key: string;
  readonly retries: number;
  readonly maxRetryAfterMs: number;
  readonly attemptTimeoutMs: number;
  readonly onRetry: ((retry: Retry) => void) | undefined;
  readonly fetch: (input: string | URL, init: RequestInit) => Promise<Response>;
  readonly timers: ClientTimers;
  /** Wait after this attempt, in milliseconds. */
  backoff(attempt: number): number;
  /** Part of a wait that is added so that clients that were told the same do not come at once, in milliseconds. */
  spread(): number;
}

const DEFAULTS = {
  retries: 5,
  minDelayMs: 500,
  maxDelayMs: 15_000,
  maxRetryAfterMs: 60_000,
  attemptTimeoutMs: 60_000,
} as const;
type NumberName = keyof typeof DEFAULTS;

const platformTimers: ClientTimers = {
  after(ms, call) {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};
/** Longest that the platform's timers can wait, in milliseconds. */
const MAX_MS = 2_147_483_647;

/** @throws OptionError */
export function retrySettings(options: RetryOptions, headers: Headers): RetrySettings {
  checkOptions(options, ['key', 'onRetry', 'fetch', 'timers', 'random', ...Object.keys(DEFAULTS)], 'options');
  const numbers: Record<string, number> = {};
  for (const name of Object.keys(DEFAULTS) as NumberName[]) {
    const value = options[name] ?? DEFAULTS[name];
    if (!(Number.isSafeInteger(value) && value >= 0 && value <= MAX_MS))
      throw new OptionError(name, value, `must be an integer from 0 to ${MAX_MS}`);
    numbers[name] = value;
  }
  const { retries, minDelayMs, maxDelayMs, maxRetryAfterMs, attemptTimeoutMs } = numbers as Record<NumberName, number>;
  const { onRetry, timers = platformTimers, random = Math.random } = options;
  return {
    key: keyOf(options.key, headers),
    retries,
    maxRetryAfterMs,
    attemptTimeoutMs,
    onRetry,
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    timers,
    backoff(attempt) {
      const most = Math.min(maxDelayMs, minDelayMs * 2 ** Math.min(attempt - 1, 31));
      return Math.round(most / 2 + (random() * most) / 2);
    },
    spread: () => Math.round((random() * minDelayMs) / 2),
  };
}

function keyOf(given: string | undefined, headers: Headers): string {
  const inHeaders = headers.get('idempotency-key') ?? undefined;
  if (given !== undefined && inHeaders !== undefined && given !== inHeaders)
    throw new OptionError('key', given, 'must not differ from the Idempotency-Key in init.headers');
  const key = given ?? inHeaders ?? crypto.randomUUID();
  if (!/^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) {
    throw new OptionError('key', key, 'must be 1 to 255 printable ASCII characters, without a space at either end');
  }
  return key;
}
