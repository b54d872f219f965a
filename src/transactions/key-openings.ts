import { Emitter } from '../base/emitter.ts';
import { ClosedError } from '../base/errors.ts';
import type { KeptResult } from '../core/claim.ts';
import type { ClaimId, ReadyOptions } from '../core/ports.ts';
import type { ClaimEvent, IdempotencyEvent } from '../idempotency/events.ts';
import { eventOf, type OpenedClaim } from '../idempotency/open.ts';
import type { Refused } from '../idempotency/refusal.ts';
import { RolledBackError } from '../idempotency/rolled-back.ts';
import type { ClaimSettings } from '../idempotency/settings.ts';
import { ClaimTable } from '../stores/postgres/claim-table.ts';
import type { PostgresClient } from '../stores/postgres/client.ts';
import type { Connection } from '../stores/postgres/database.ts';
import { Server } from '../stores/postgres/server.ts';
import { isConflict, MAX_RETRIES } from './failures.ts';
import { KeyTurns, type TakenTurn } from './key-turns.ts';
import { type CommitResult, type OpenTransaction, openTransaction, type TransactionParts } from './open-transaction.ts';
import type { fillOptions } from './options.ts';
import { claimKey, completeKey, type KeyReply, type KeyToClaim, type Ticket } from './statements.ts';
import { TransactionalClaim } from './transactional-claim.ts';

type Options = ReturnType<typeof fillOptions>;
type NotClaimed = Exclude<KeyReply, { kind: 'claimed' }>;

/** `retryAfterMs` of a duplicate that stops waiting, unless a lease ends earlier. */
const RETRY_AFTER_MS = 1_000;
/** Pause between two looks for a commit whose answer was lost, while the server is away. */
const LOOK_AGAIN_MS = 50;

/** The result of a claim that was not made. */
export type NotOpened = { readonly kind: 'replay'; readonly result: KeptResult } | Refused;

/** Opens transactions that claim keys, and ends them. */
export class KeyOpenings {
  readonly #options: Options;
  readonly #parts: TransactionParts;
  readonly #server: Server;
  readonly #table: ClaimTable;
  readonly #turns: KeyTurns;
  readonly #events: Emitter<IdempotencyEvent>;
  readonly #held = new Set<TransactionalClaim>();
  readonly #whenIdle: (() => void)[] = [];
  #tokens = 0;
  readonly #name = crypto.randomUUID();
  closed = false;

  /** @throws OptionError */
  constructor(client: PostgresClient, options: Options) {
    this.#options = options;
    const { isolation, deadlineMs, timers, onEvent, log } = options;
    const effect = 'requests with a key are refused';
    this.#server = new Server(client, { ...options, store: 'claims', what: 'idempotency keys', effect });
    this.#table = new ClaimTable(this.#server, options.maxClaimsPerScope);
    this.#turns = new KeyTurns(timers);
    this.#events = new Emitter(onEvent, log);
    this.#parts = { schema: this.#server.schema, isolation, deadlineMs, timers, now: () => this.#server.now() };
  }

  get held(): number {
    return this.#held.size;
  }

  get waiting(): number {
    return this.#turns.waiting;
  }

  ready(options?: ReadyOptions): Promise<void> {
    return this.#server.ready(options);
  }

  emit({ scope, key }: ClaimId, event: ClaimEvent): void {
    if (this.#events.hasListener) this.#events.emit({ scope, key, ...event });
  }

  /** Claims the key in a new transaction, or returns why that is not possible. Never rejects. */
  async open(id: ClaimId, fingerprint: string, settings: ClaimSettings, signal?: AbortSignal): Promise<OpenedClaim> {
    const opened = await this.#open(id, fingerprint, settings, signal);
    this.emit(id, eventOf(opened));
    return opened;
  }

  async #open(
    id: ClaimId,
    fingerprint: string,
    settings: ClaimSettings,
    signal: AbortSignal | undefined,
  ): Promise<OpenedClaim> {
    if (this.closed) return { kind: 'unavailable', error: new ClosedError('this idempotency instance') };
    const { timers, deadlineMs } = this.#options;
    const endsAt = timers.now() + settings.waitMs;
    const turn = await this.#turns.take(id, fingerprint, settings.waitMs, signal);
    if (turn.kind !== 'taken') return refusedTurn(turn);
    try {
      const waitMs = Math.max(0, endsAt - timers.now());
      const key = { ...this.#keyFor(id, fingerprint, settings), waitMs, idleMs: settings.maxRunMs + deadlineMs };
      const { reply, opened } = await this.#openRepeatedly(key);
      this.#server.outages.answered();
      if (opened === undefined) {
        turn.end();
        return this.#notOpened(id, reply as NotClaimed);
      }
      const claim = this.#claimOf(opened, reply as Extract<KeyReply, { kind: 'claimed' }>, fingerprint, settings, turn);
      if (!signal?.aborted && !this.closed) return { kind: 'claimed', claim };
      await claim.abandon();
      return { kind: 'refused', reason: 'aborted' };
    } catch (error) {
      turn.end();
      this.#server.outages.failed(error);
      return { kind: 'unavailable', error };
    }
  }

  /** Nothing ran yet, so a conflict with another transaction is only a reason to begin again. */
  async #openRepeatedly(key: KeyToClaim): ReturnType<typeof openTransaction> {
    for (let retries = 0; ; retries++) {
      try {
        return await openTransaction(this.#parts, key);
      } catch (error) {
        if (!isConflict(error) || retries === MAX_RETRIES) throw error;
      }
    }
  }

  #claimOf(
    opened: OpenTransaction,
    reply: Extract<KeyReply, { kind: 'claimed' }>,
    fingerprint: string,
    settings: ClaimSettings,
    turn: Extract<TakenTurn, { kind: 'taken' }>,
  ): TransactionalClaim {
    const { timers, log } = this.#options;
    const { id } = opened.ticket;
    const claim = new TransactionalClaim(opened, {
      id,
      fingerprint,
      settings,
      timers,
      log,
      emit: (event) => this.emit(id, event),
      lookUp: () => this.#lookUp(opened.ticket, fingerprint, settings),
      onEnd: (isCommitted) => {
        turn.end();
        if (isCommitted) this.#begun(id, reply);
        this.#held.delete(claim);
        if (this.#held.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
      },
    });
    this.#held.add(claim);
    return claim;
  }

  /**
   * What became of a commit whose answer was lost. Another transaction gets the key only when the first one is over, so
   * its claim decides: if it gets the key, then nothing was committed, and nothing will be.
   */
  async #lookUp(
    { id, token }: Ticket,
    fingerprint: string,
    settings: ClaimSettings,
  ): Promise<CommitResult | { readonly kind: 'superseded'; readonly result: KeptResult }> {
    const { timers, deadlineMs } = this.#options;
    const endsAt = timers.now() + deadlineMs;
    let failure: unknown = new Error('the connection failed during the commit');
    for (let leftMs = deadlineMs; leftMs > 0; leftMs = endsAt - timers.now()) {
      try {
        const key = { ...this.#keyFor(id, fingerprint, settings), waitMs: leftMs, full: false };
        const { reply, opened } = await openTransaction({ ...this.#parts, isolation: 'read committed' }, key);
        await opened?.rollBack();
        if (opened !== undefined || reply.kind === 'mismatch') return { kind: 'rolled_back', error: failure };
        if (reply.kind === 'settled') {
          return reply.owner === token
            ? { kind: 'committed', ended: false }
            : { kind: 'superseded', result: reply.result };
        }
      } catch (error) {
        failure = error;
        await new Promise<void>((resolve) => timers.after(LOOK_AGAIN_MS, resolve, false));
      }
    }
    return { kind: 'unknown', error: failure };
  }

  /**
   * Claims a key in a transaction of the user's.
   * @throws PostgresSetupError, or the error of the connection
   */
  async claimIn(
    connection: Connection,
    id: ClaimId,
    fingerprint: string,
    settings: ClaimSettings,
  ): Promise<{ readonly kind: 'claimed'; readonly ticket: Ticket } | NotOpened> {
    const key = this.#keyFor(id, fingerprint, settings);
    const reply = await claimKey(this.#parts.schema, connection, key, this.#server.now());
    if (reply.kind === 'claimed') {
      this.#begun(id, reply);
      this.emit(id, { type: 'claimed', inherited: false });
      return reply;
    }
    const opened = this.#notOpened(id, reply);
    this.emit(id, eventOf(opened));
    return opened;
  }

  /** @throws RolledBackError, or the error of the connection */
  async completeIn(connection: Connection, ticket: Ticket, result: KeptResult): Promise<void> {
    const stored = await completeKey(this.#parts.schema, connection, ticket, result);
    if (stored !== 'ok') throw new RolledBackError('it is not the one in which the key was claimed');
    this.emit(ticket.id, { type: 'completed', status: result.status, valueKept: result.value !== undefined });
  }

  idle(): Promise<void> {
    if (this.#held.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  async close(timeoutMs: number): Promise<void> {
    this.closed = true;
    let cancel = (): void => {};
    const timeout = new Promise<void>((resolve) => {
      cancel = this.#options.timers.after(timeoutMs, resolve, false);
    });
    await Promise.race([this.idle(), timeout]);
    cancel();
  }

  #keyFor(id: ClaimId, fingerprint: string, { retentionMs, waitMs }: ClaimSettings): KeyToClaim {
    const token = `${this.#name}-${++this.#tokens}`;
    return { id, token, fingerprint, retentionMs, waitMs, full: this.#table.isFull(id.scope) };
  }

  #begun(id: ClaimId, { isNew, forgotten }: Extract<KeyReply, { kind: 'claimed' }>): void {
    this.#table.begun(id, { isNew, forgotten });
    if (forgotten !== undefined) this.emit({ scope: id.scope, key: forgotten }, { type: 'forgotten' });
  }

  #notOpened({ scope }: ClaimId, reply: NotClaimed): NotOpened {
    switch (reply.kind) {
      case 'settled': {
        const { result } = reply;
        return result.value === undefined
          ? { kind: 'refused', reason: 'not_kept', status: result.status }
          : { kind: 'replay', result };
      }
      case 'mismatch':
        return { kind: 'refused', reason: 'mismatch', fingerprint: reply.fingerprint };
      case 'in_progress':
        return refuseInProgress(reply.remainingMs);
      case 'orphan':
        return { kind: 'refused', reason: 'orphan' };
      case 'full':
        return { kind: 'refused', reason: 'too_many_keys', retryAfterMs: this.#table.retryAfterMs(scope) };
    }
  }
}

function refusedTurn(turn: Exclude<TakenTurn, { kind: 'taken' }>): Refused {
  switch (turn.kind) {
    case 'mismatch':
      return { kind: 'refused', reason: 'mismatch', fingerprint: turn.fingerprint };
    case 'in_progress':
      return refuseInProgress(RETRY_AFTER_MS);
    case 'aborted':
      return { kind: 'refused', reason: 'aborted' };
  }
}

function refuseInProgress(remainingMs: number): Refused {
  return { kind: 'refused', reason: 'in_progress', retryAfterMs: Math.max(1, Math.min(remainingMs, RETRY_AFTER_MS)) };
}
