import { StoreUnavailableError } from '../../base/errors.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import type { ReadyOptions } from '../../core/ports.ts';
import type { StoreCall } from '../../core/store-channel.ts';
import { CircuitBreaker } from '../shared/circuit-breaker.ts';
import { OutageLog } from '../shared/outage-log.ts';
import { waitUntilReady } from '../shared/ready.ts';
import { traceCall } from '../shared/store-tracer.ts';
import type { PostgresClient } from './client.ts';
import type { Database, Row } from './database.ts';
import { codeOf, isOfStatement, NotSentError, PostgresSetupError, RowsFailedError, setupErrorOf } from './errors.ts';
import type { Executor } from './executor.ts';
import type { fillCommonOptions } from './options.ts';
import { Schema } from './schema.ts';

/** SQLSTATE of `sql/limits.sql`: nothing happened, and the statement can be sent again. */
const AGAIN = 'HG002';
const MAX_ATTEMPTS = 5;

/** Of a server: the options of a store, and the texts of its log. */
export interface ServerOptions extends ReturnType<typeof fillCommonOptions> {
  readonly store: StoreCall['store'];
  /** The content of the server, as the log names it: `rate limits`. */
  readonly what: string;
  /** The behavior while the server fails, as a part of a sentence. */
  readonly effect: string;
}

/** headgate's schema on a server that can be slow, frozen or down: each call has a deadline and a circuit breaker. */
export class Server {
  readonly schema: Schema;
  readonly breaker: CircuitBreaker;
  readonly outages: OutageLog;
  readonly deadlineMs: number;
  readonly #store: StoreCall['store'];
  readonly #clock: Clock | undefined;

  /**
   * @param client an executor only together with `database`
   * @throws OptionError
   */
  constructor(client: PostgresClient | Executor, options: ServerOptions, database?: Database) {
    const { what, effect, log, onError, deadlineMs } = options;
    this.schema = new Schema(client, options, database);
    this.deadlineMs = deadlineMs;
    this.#store = options.store;
    this.#clock = options.clock;
    const { isReady } = this.schema.database;
    this.outages = new OutageLog({ what, effect, isReady, log, onError, isHarmless: isOfUser });
    this.breaker = new CircuitBreaker({
      deadlineMs,
      isReady,
      // The server is well, and a circuit breaker that is open would hide that the set-up or the rows are wrong.
      isHarmless: isOfUser,
      // After the error of a statement, the server has rolled it back.
      isNotExecuted: (error) => error instanceof NotSentError || isOfUser(error) || isOfStatement(error),
      onError: this.outages.failed,
      onAnswer: this.outages.answered,
    });
  }

  /** Longest wait for the turn of a call, in milliseconds. The rest of the deadline is for the call itself. */
  get maxWaitMs(): number {
    return this.deadlineMs / 2;
  }

  /** Milliseconds that a call may take whose first part arrived then. */
  timeLeft(addedAt: number): number {
    return Math.max(1, addedAt + this.deadlineMs - monotonicClock.now());
  }

  /** Reports that the turn of a call did not come in time, and returns the error. */
  tooLate(): StoreUnavailableError {
    const cause = new NotSentError(new Error(`${this.maxWaitMs} ms were not enough for the earlier calls`));
    this.outages.failed(cause);
    return new StoreUnavailableError(cause, { sent: false });
  }

  /** The time for a statement; null is the server's clock. */
  now(): string | null {
    return this.#clock === undefined ? null : String(this.#clock.now());
  }

  /**
   * Runs one statement as a traced call.
   * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError
   */
  run(operation: string, text: string, values: readonly (string | null)[]): Promise<readonly Row[]> {
    return this.read(operation, text, values, this.deadlineMs, (rows) => rows);
  }

  /**
   * Runs one statement as a traced call, and reads its rows. If `read` fails, the call failed.
   * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError
   */
  read<T>(
    operation: string,
    text: string,
    values: readonly (string | null)[],
    deadlineMs: number,
    read: (rows: readonly Row[]) => T | Promise<T>,
  ): Promise<T> {
    return traceCall(this.#store, operation, this.breaker, () => this.query(text, values, deadlineMs, read));
  }

  /**
   * Runs one statement.
   * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError
   */
  query(text: string, values: readonly (string | null)[], deadlineMs: number): Promise<readonly Row[]>;
  query<T>(
    text: string,
    values: readonly (string | null)[],
    deadlineMs: number,
    read: (rows: readonly Row[]) => T | Promise<T>,
  ): Promise<T>;
  async query<T>(
    text: string,
    values: readonly (string | null)[],
    deadlineMs: number,
    read?: (rows: readonly Row[]) => T | Promise<T>,
  ): Promise<readonly Row[] | T> {
    // Also while the circuit breaker is open.
    this.schema.checkOpen();
    const until = monotonicClock.now() + deadlineMs;
    try {
      const send = () => this.#repeated(text, values, until);
      return await (read === undefined ? this.breaker.run(send, deadlineMs) : this.breaker.run(send, deadlineMs, read));
    } catch (error) {
      throw setupErrorOf(error) ?? error;
    }
  }

  /** A row that is deleted while a statement waits for it makes the statement fail. It was over, so this is rare. */
  async #repeated(text: string, values: readonly (string | null)[], until: number): Promise<readonly Row[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.schema.query(text, values, until);
      } catch (error) {
        if (codeOf(error) !== AGAIN || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /**
   * Resolves after the first answer of the server.
   * @throws PostgresSetupError at once, StoreUnavailableError after `timeoutMs`, or the reason of the signal
   */
  ready(options?: ReadyOptions): Promise<void> {
    const { isReady: isConnected, onClientError } = this.schema.database;
    const probe = () => this.breaker.run(() => this.schema.check(monotonicClock.now() + this.deadlineMs));
    return waitUntilReady({ isConnected, onClientError, probe, finalError: setupErrorOf }, options);
  }
}

function isOfUser(error: unknown): boolean {
  return error instanceof PostgresSetupError || error instanceof RowsFailedError;
}

/** Whether a call failed before the server executed anything, and will not be executed later. */
export function isNotExecuted(error: unknown): boolean {
  return error instanceof PostgresSetupError || (error instanceof StoreUnavailableError && !error.sent);
}
