import { OptionError } from '../base/errors.ts';
import { createLogger, type Logger } from '../base/logger.ts';

/** The mistake that a {@link MisuseWarning} reports. `docs/misuse.md` explains each code in a section. */
export type MisuseCode =
  | 'HG_ACCOUNT_NEVER_SEEN'
  | 'HG_ADJUSTMENT_HIDES'
  | 'HG_DECISION_IGNORED'
  | 'HG_GATE_TWICE'
  | 'HG_GROUP_NEVER_SEEN'
  | 'HG_LANE_NEVER_SEEN'
  | 'HG_LANE_WITHOUT_ROOM'
  | 'HG_LIMITER_PER_REQUEST'
  | 'HG_MEMORY_IN_CLUSTER'
  | 'HG_NEVER_RELEASED'
  | 'HG_NO_ACCOUNT'
  | 'HG_NOTHING_LIMITED'
  | 'HG_PLAN_NEVER_SEEN'
  | 'HG_PROVIDER_NEVER_SEEN'
  | 'HG_PROVIDER_WITHOUT_LIMITS'
  | 'HG_PROXY_FIELD_MISSING'
  | 'HG_PROXY_NOT_TRUSTED'
  | 'HG_RECEIPTS_IN_MEMORY'
  | 'HG_ROUTE_NEVER_SEEN'
  | 'HG_ROUTE_OF_NO_REQUEST'
  | 'HG_SECONDS'
  | 'HG_SHARED_PREFIX'
  | 'HG_TOO_FEW_PROXIES'
  | 'HG_TOO_MANY_ROUTES'
  | 'HG_UNDEFINED_IN_ACCOUNT'
  | 'HG_UNIT_NEVER_SEEN'
  | 'HG_UNKNOWN_FIELD'
  | 'HG_WINDOW_WITHOUT_EFFECT';

/**
 * The library is used in a way that is valid, but probably a mistake: limits would not do what their author expects. It
 * is logged, never thrown.
 */
export class MisuseWarning extends Error {
  readonly code: MisuseCode;

  constructor(code: MisuseCode, what: string) {
    super(what);
    this.name = 'MisuseWarning';
    this.code = code;
    // A stack would only show the request that happened to be looked at, in many lines.
    this.stack = `${this.name}: ${this.message}`;
  }
}

/** Logs each kind of misuse once. */
export class MisuseLog {
  readonly #log: Logger;
  readonly #logged = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * @param what the observation and the advice, as sentences
   * @param kind warnings of one code are logged once per kind; the program must bound the number of kinds
   */
  warn(code: MisuseCode, what: string, kind = ''): void {
    if (this.#logged.has(code + kind)) return;
    this.#logged.add(code + kind);
    this.#log(`headgate: ${code}`, new MisuseWarning(code, what));
  }
}

/** Options of everything that checks how it is used. */
export interface MisuseOptions {
  readonly validate?: boolean | undefined;
  readonly logger?: Logger | false | undefined;
}

/**
 * The log of the warnings; undefined if `validate` is false.
 * @throws OptionError
 */
export function createMisuseLog({ validate = true, logger }: MisuseOptions): MisuseLog | undefined {
  if (typeof validate !== 'boolean') throw new OptionError('validate', validate, 'must be true or false');
  const log = createLogger(logger);
  return validate ? new MisuseLog(log) : undefined;
}

/**
 * Whether a number of milliseconds is probably one of seconds: a minute, hour or day has so many, and nobody counts
 * milliseconds like this (3600, 86400, 2592000).
 */
export function isSeconds(ms: number): boolean {
  return (ms % 60 === 0 && ms % 500 !== 0) || (ms % 86_400 === 0 && ms % 60_000 !== 0);
}
