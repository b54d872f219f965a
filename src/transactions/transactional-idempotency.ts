import { ClosedError, OptionError, SubjectError } from '../base/errors.ts';
import { checkOptions } from '../base/options.ts';
import type { KeptResult } from '../core/claim.ts';
import type { ClaimId, ReadyOptions } from '../core/ports.ts';
import { fingerprintOf } from '../idempotency/fingerprint.ts';
import { checkId, closeTimeoutOf, codecFrom, type KeyOpener, OPEN_OPTIONS } from '../idempotency/idempotency.ts';
import type { OpenedClaim, OpenRequest } from '../idempotency/open.ts';
import { boundedResult, decodeOutcome, encodeValue, type ResultCodec } from '../idempotency/outcome.ts';
import type { Refused, Unavailable } from '../idempotency/refusal.ts';
import type { ClaimSettings } from '../idempotency/settings.ts';
import type { PostgresClient } from '../stores/postgres/client.ts';
import { connectionOf, type Executor } from '../stores/postgres/executor.ts';
import type { TransactionOf } from './client-transaction.ts';
import { isConflict, MAX_RETRIES } from './failures.ts';
import { KeyOpenings } from './key-openings.ts';
import { fillOptions, settingsFor, type TransactionalIdempotencyOptions, type TransactionSettings } from './options.ts';
import type { Ticket } from './statements.ts';
import type { TransactionalClaim } from './transactional-claim.ts';

/** Options of one `run`. */
export interface TransactionRunOptions<T> extends TransactionSettings, Partial<ResultCodec<T>> {
  /** Ends the wait for another transaction with this key. */
  readonly signal?: AbortSignal | undefined;
}

/** Result of `run`. */
export type TransactionRunResult<T> =
  /** The operation ran, and its transaction is committed. */
  | { readonly kind: 'executed'; readonly value: T }
  /** The value of an earlier execution. */
  | { readonly kind: 'replayed'; readonly value: T }
  | Refused
  /** Nothing was executed, or it is unknown whether the transaction was committed: retry with the same key. */
  | Unavailable;

/** A key that is claimed in a transaction of your own. Pass it to `complete` in the same transaction. */
export interface TransactionTicket {
  readonly kind: 'claimed';
  /** @internal */
  readonly ticket: Ticket;
}

/** Executes the request of each key once. The key, the rows of your handler and the stored answer commit together. */
export interface TransactionalIdempotency<Transaction> extends KeyOpener {
  /**
   * Executes the operation once per key, in a transaction. If PostgreSQL rolls it back because of a concurrent one, it is
   * repeated, three times at most.
   * @param key a string, or a key and its scope: one tenant can neither replay nor probe the keys of another (I2)
   * @param request text, bytes or JSON; another request with the same key is refused
   * @throws what the operation throws, after the transaction was rolled back: the key is free then. Also the error with
   * which PostgreSQL refused the commit, RolledBackError, OptionError, SubjectError, ClosedError
   */
  run<T>(
    key: string | ClaimId,
    request: unknown,
    operation: (transaction: Transaction) => T | Promise<T>,
    options?: TransactionRunOptions<T>,
  ): Promise<TransactionRunResult<T>>;
  /**
   * Claims a key in a transaction of your own, before its other statements.
   * @throws the error of the executor: then roll back. Also OptionError, SubjectError
   */
  claim<T>(
    executor: Executor,
    key: string | ClaimId,
    request: unknown,
    options?: Omit<TransactionSettings, 'maxRunMs' | 'maxKeptBytes'> & Pick<Partial<ResultCodec<T>>, 'deserialize'>,
  ): Promise<TransactionTicket | { readonly kind: 'replayed'; readonly value: T } | Refused>;
  /**
   * Stores the value of a key that `claim` claimed, in the same transaction. Commit after it.
   * @throws RolledBackError if the claim is not there any more, and the error of the executor: then roll back
   */
  complete<T>(
    executor: Executor,
    ticket: TransactionTicket,
    value: T,
    options?: Pick<TransactionSettings, 'maxKeptBytes'> & Pick<Partial<ResultCodec<T>>, 'serialize'>,
  ): Promise<void>;
  /**
   * The open transaction of a request, for its handler. It ends when the handler answers.
   * @param passage as `passageOf()` of the adapter returns it
   * @returns undefined if the request has no idempotency key
   */
  transactionOf(passage: { readonly transaction?: object | undefined } | undefined): Transaction | undefined;
  /** How many transactions are open now. */
  readonly held: number;
  /** How many duplicates wait for another request of this process now (I5). */
  readonly waiting: number;
  /**
   * Resolves after the first answer of PostgreSQL.
   * @throws PostgresSetupError at once, StoreUnavailableError after `timeoutMs`, or the reason of the signal
   */
  ready(options?: ReadyOptions): Promise<void>;
  /** Resolves when no transaction is open. */
  idle(): Promise<void>;
  /**
   * Refuses new calls, and lets open transactions end for `timeoutMs`. Does not end the client.
   * @param options.timeoutMs milliseconds, default 5,000
   */
  close(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}

const RUN_OPTIONS = ['waitMs', 'retentionMs', 'maxKeptBytes', 'maxRunMs', 'signal', 'serialize', 'deserialize'];
const CLAIM_OPTIONS = ['waitMs', 'retentionMs', 'deserialize'];
const COMPLETE_OPTIONS = ['maxKeptBytes', 'serialize'];

/**
 * Creates idempotency whose claims are made in a transaction of PostgreSQL, together with the rows that a handler
 * writes. Pass it to `createGate` as `idempotency`, or call `run`. Call `migrate` once before.
 * @example
 * ```ts
 * const idempotency = createTransactionalIdempotency(pool);
 * const result = await idempotency.run({ scope: 'app_1', key: 'order-7' }, order, async (transaction) => {
 *   const { rows } = await transaction.query('insert into orders (item) values ($1) returning id', [order.item]);
 *   return rows[0];
 * });
 * ```
 * @throws OptionError
 */
export function createTransactionalIdempotency<Client extends PostgresClient>(
  client: Client,
  options: TransactionalIdempotencyOptions = {},
): TransactionalIdempotency<TransactionOf<Client>> {
  const filled = fillOptions(options);
  return new PostgresTransactions(client, new KeyOpenings(client, filled), filled.settings);
}

class PostgresTransactions<Transaction> implements TransactionalIdempotency<Transaction> {
  readonly settings: ClaimSettings;
  readonly #openings: KeyOpenings;
  readonly #client: PostgresClient;

  constructor(client: PostgresClient, openings: KeyOpenings, settings: ClaimSettings) {
    this.#client = client;
    this.settings = settings;
    this.#openings = openings;
  }

  sharesConnections(identity: object): boolean {
    return (identity as { readonly client?: unknown }).client === this.#client;
  }

  get held(): number {
    return this.#openings.held;
  }

  get waiting(): number {
    return this.#openings.waiting;
  }

  async open(request: OpenRequest): Promise<OpenedClaim> {
    checkOptions(request, OPEN_OPTIONS, 'request');
    const { reconcile, fingerprint, signal } = request;
    if (reconcile !== undefined)
      throw new OptionError('reconcile', reconcile, 'must not be given: there are no orphans');
    if (typeof fingerprint !== 'string') throw new SubjectError('fingerprint', fingerprint);
    return this.#openings.open(checkId(request), fingerprint, settingsFor(request, this.settings), signal);
  }

  async run<T>(
    key: string | ClaimId,
    request: unknown,
    operation: (transaction: Transaction) => T | Promise<T>,
    options: TransactionRunOptions<T> = {},
  ): Promise<TransactionRunResult<T>> {
    if (this.#openings.closed) throw new ClosedError('this idempotency instance');
    checkOptions(options, RUN_OPTIONS, 'options');
    if (typeof operation !== 'function') throw new OptionError('operation', operation, 'must be a function');
    const id = checkId(key);
    const codec = codecFrom(options);
    const settings = settingsFor(options, this.settings);
    const fingerprint = await fingerprintOf(request);
    for (let retries = 0; ; retries++) {
      const opened = await this.#openings.open(id, fingerprint, settings, options.signal);
      switch (opened.kind) {
        case 'claimed': {
          const result = await execute(opened.claim as TransactionalClaim, operation as Operation<T>, codec);
          if (!('conflict' in result)) return result;
          if (retries === MAX_RETRIES) throw result.conflict;
          break;
        }
        case 'replay':
          return replay(opened.result, codec);
        case 'bypassed':
          return { kind: 'unavailable', error: opened.error };
        default:
          return opened;
      }
    }
  }

  async claim<T>(
    executor: Executor,
    key: string | ClaimId,
    request: unknown,
    options: Omit<TransactionSettings, 'maxRunMs' | 'maxKeptBytes'> & Pick<Partial<ResultCodec<T>>, 'deserialize'> = {},
  ): Promise<TransactionTicket | { readonly kind: 'replayed'; readonly value: T } | Refused> {
    checkOptions(options, CLAIM_OPTIONS, 'options');
    const id = checkId(key);
    const codec = codecFrom<T>(options);
    const settings = settingsFor(options, this.settings);
    const fingerprint = await fingerprintOf(request);
    const claimed = await this.#openings.claimIn(connectionOf(executor), id, fingerprint, settings);
    return claimed.kind === 'replay' ? replay(claimed.result, codec) : claimed;
  }

  async complete<T>(
    executor: Executor,
    claimed: TransactionTicket,
    value: T,
    options: Pick<TransactionSettings, 'maxKeptBytes'> & Pick<Partial<ResultCodec<T>>, 'serialize'> = {},
  ): Promise<void> {
    if (claimed?.kind !== 'claimed')
      throw new OptionError('claim', claimed, 'must be what claim() returned: a claimed key');
    checkOptions(options, COMPLETE_OPTIONS, 'options');
    const { maxKeptBytes } = settingsFor(options, this.settings);
    const result = boundedResult(encodeValue(value, codecFrom<T>(options)), maxKeptBytes);
    await this.#openings.completeIn(connectionOf(executor), claimed.ticket, result);
  }

  transactionOf(passage: { readonly transaction?: object | undefined } | undefined): Transaction | undefined {
    return passage?.transaction as Transaction | undefined;
  }

  ready(options?: ReadyOptions): Promise<void> {
    return this.#openings.ready(options);
  }

  idle(): Promise<void> {
    return this.#openings.idle();
  }

  async close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    await this.#openings.close(closeTimeoutOf(options));
  }
}

type Operation<T> = (transaction: object) => T | Promise<T>;

/** Runs the operation in the transaction of its claim, and commits or rolls back. */
async function execute<T>(
  claim: TransactionalClaim,
  operation: Operation<T>,
  codec: ResultCodec<T>,
): Promise<TransactionRunResult<T> | { readonly conflict: unknown }> {
  let value: T;
  try {
    value = await operation(claim.transaction);
  } catch (error) {
    await claim.abandon();
    if (isConflict(error)) return { conflict: error };
    throw error;
  }
  const completion = await claim.complete(encodeValue(value, codec));
  switch (completion.kind) {
    case 'kept':
      return { kind: 'executed', value };
    case 'superseded':
      return replay(completion.result, codec);
    case 'lost':
      return { kind: 'refused', reason: 'lost' };
    case 'pending':
      return { kind: 'unavailable', error: completion.error };
    case 'undone':
      if (isConflict(completion.error)) return { conflict: completion.error };
      if (completion.isRefused) throw completion.error;
      return { kind: 'unavailable', error: completion.error };
  }
}

/** @throws KeptFailureError if the outcome is the failure of a `run` of `createIdempotency` */
function replay<T>(
  { status, value }: KeptResult,
  codec: ResultCodec<T>,
): { readonly kind: 'replayed'; readonly value: T } | Refused {
  if (value === undefined) return { kind: 'refused', reason: 'not_kept', status };
  const outcome = decodeOutcome(value, status, codec);
  if (outcome.kind === 'failed') throw outcome.error;
  return outcome;
}
