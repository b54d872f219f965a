import { OptionError } from '../base/errors.ts';
import { checkFunctions, checkOptions } from '../base/options.ts';

/** The timer functions of {@link RetryOptions.timers}. */
export interface ClientTimers {
  /** Calls `call` once, after `ms` milliseconds. The returned function cancels the call. */
  after(ms: number, call: () => void): () => void;
}

/** What `onRetry` is passed before the wait for the next attempt. */
export interface Retry {
  readonly key: string;
  /** Number of the attempt that ended, from 1. */
  readonly attempt: number;
  /** Milliseconds until the next attempt. */
  readonly delayMs: number;
  /** The response to the attempt, if there was one. Do not read its body. */
  readonly response?: Response;
  /** Why the attempt got no response. */
  readonly error?: unknown;
}

/** Options of `fetchWithRetry`. */
export interface RetryOptions {
  /**
   * The idempotency key: 1 to 255 printable ASCII characters, without a space at either end. Store it with the job
   * before the first attempt, so that it survives the process.
   * @default the Idempotency-Key of `init.headers`, or a random UUID
   */
  readonly key?: string | undefined;
  /**
   * Most attempts after the first one.
   * @default 5
   */
  readonly retries?: number | undefined;
  /**
   * First wait if the response lacks `retry-after`, in milliseconds. It doubles with each attempt, and half of it is
   * random.
   * @default 500
   */
  readonly minDelayMs?: number | undefined;
  /**
   * Longest such wait, in milliseconds.
   * @default 15_000
   */
  readonly maxDelayMs?: number | undefined;
  /**
   * Longest `retry-after` that is waited for, in milliseconds. A response with a longer one is returned to the caller.
   * @default 60_000
   */
  readonly maxRetryAfterMs?: number | undefined;
  /**
   * Longest wait for the head of a response, in milliseconds.
   * @default 60_000
   */
  readonly attemptTimeoutMs?: number | undefined;
  /** Called before each retry. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** @default globalThis.fetch */
  readonly fetch?: ((input: string | URL, init: RequestInit) => Promise<Response>) | undefined;
  /**
   * Timers, for tests.
   * @default the platform's timers
   */
  readonly timers?: ClientTimers | undefined;
  /**
   * Returns a number from 0 up to, but not including, 1; for tests.
   * @default Math.random
   */
  readonly random?: (() => number) | undefined;
}

/** {@link RetryOptions} with their defaults. */
export interface RetrySettings extends Readonly<Record<NumberName, number>> {
  readonly key: string;
  readonly onRetry: RetryOptions['onRetry'];
  readonly fetch: NonNullable<RetryOptions['fetch']>;
  readonly timers: ClientTimers;
  /** The wait after this attempt if the response lacks `retry-after`, in milliseconds. */
  backoff(attempt: number): number;
  /**
   * A random addition to `retry-after`, in milliseconds, so that clients with the same `retry-after` do not return
   * together.
   */
  jitter(): number;
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
/** Longest wait of the platform's timers, in milliseconds. */
const MAX_MS = 2_147_483_647;

/** @throws OptionError */
export function retrySettings(options: RetryOptions, headers: Headers): RetrySettings {
  checkOptions(options, ['key', 'onRetry', 'fetch', 'timers', 'random', ...Object.keys(DEFAULTS)], 'options');
  const numbers: Record<NumberName, number> = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS) as NumberName[]) {
    const { [name]: value = DEFAULTS[name] } = options;
    if (!(Number.isSafeInteger(value) && value >= 0 && value <= MAX_MS))
      throw new OptionError(name, value, `must be an integer from 0 to ${MAX_MS}`);
    numbers[name] = value;
  }
  const { minDelayMs, maxDelayMs } = numbers;
  checkFunctions(options, ['onRetry', 'fetch', 'random']);
  const { onRetry, timers = platformTimers, random = Math.random } = options;
  return {
    ...numbers,
    key: chooseKey(options.key, headers),
    onRetry,
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    timers,
    backoff(attempt) {
      const most = Math.min(maxDelayMs, minDelayMs * 2 ** Math.min(attempt - 1, 31));
      return Math.round(most / 2 + (random() * most) / 2);
    },
    jitter: () => Math.round((random() * minDelayMs) / 2),
  };
}

function chooseKey(given: string | undefined, headers: Headers): string {
  const inHeaders = headers.get('idempotency-key') ?? undefined;
  if (given !== undefined && inHeaders !== undefined && given !== inHeaders)
    throw new OptionError('key', given, 'must not differ from the Idempotency-Key in init.headers');
  const key = given === undefined ? (inHeaders ?? crypto.randomUUID()) : given;
  // Converted to text, every promise would be the same key.
  if (typeof key !== 'string' || !/^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(key)) {
    throw new OptionError('key', key, 'must be 1 to 255 printable ASCII characters, without a space at either end');
  }
  return key;
}
