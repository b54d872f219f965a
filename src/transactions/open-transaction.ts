import { StoreTimeoutError, StoreUnavailableError } from '../base/errors.ts';
import type { KeptResult } from '../core/claim.ts';
import type { Timers } from '../core/timers.ts';
import { RolledBackError } from '../idempotency/rolled-back.ts';
import type { Connection, Isolation } from '../stores/postgres/database.ts';
import { CommitError, PostgresSetupError, setupProblemOf } from '../stores/postgres/errors.ts';
import type { Schema } from '../stores/postgres/schema.ts';
import { closeConnection, type GuardedTransaction, guardTransaction } from './client-transaction.ts';
import { isConflict } from './failures.ts';
import { claimKey, completeKey, type KeyReply, type KeyToClaim, type Ticket } from './statements.ts';

/** The parts of the room that transactions need. */
export interface TransactionParts {
  readonly schema: Schema;
  readonly isolation: Isolation | undefined;
  readonly deadlineMs: number;
  readonly timers: Timers;
  /** The time for a statement; null is the server's clock. */
  readonly now: () => string | null;
}

/** What became of a commit. */
export type CommitResult =
  /** `ended`: the handler committed before. */
  | { readonly kind: 'committed'; readonly ended: boolean }
  /** Rolled back for sure: nothing of the transaction remains. */
  | { readonly kind: 'rolled_back'; readonly error: unknown }
  /** The connection failed during the commit. */
  | { readonly kind: 'unknown'; readonly error: unknown };

/** How the owner of a transaction ends it. `undefined`: roll back. */
type Ending = ((connection: Connection) => Promise<void>) | undefined;

/** Rolls back. */
const ROLL_BACK = new Error('rolled back');

/** A transaction that claimed a key, and that is open until its owner ends it. */
export class OpenTransaction {
  readonly #parts: TransactionParts;
  readonly ticket: Ticket;
  readonly #native: unknown;
  readonly #guarded: GuardedTransaction;
  readonly #end: (ending: Ending) => void;
  /** Settles when the transaction is over: rejects unless it was committed. */
  readonly #over: Promise<void>;

  constructor(
    parts: TransactionParts,
    ticket: Ticket,
    native: unknown,
    end: (ending: Ending) => void,
    over: Promise<void>,
  ) {
    this.#parts = parts;
    this.ticket = ticket;
    this.#native = native;
    this.#guarded = guardTransaction(native as object);
    this.#end = end;
    this.#over = over;
    // A client can connect again, and would then run the next statement of the handler outside of the transaction.
    over.catch(() => this.#guarded.revoke());
  }

  /** The client's own transaction, for the handler. */
  get transaction(): object {
    return this.#guarded.transaction;
  }

  /** Stores the outcome, and commits. Never rejects. */
  async commit(result: KeptResult): Promise<CommitResult> {
    const { schema, deadlineMs, timers } = this.#parts;
    this.#guarded.revoke();
    let stored: 'ok' | 'lost' | 'ended' | undefined;
    this.#end(async (connection) => {
      stored = await completeKey(schema, connection, this.ticket, result);
      if (stored === 'lost') throw new RolledBackError('the handler itself ended it');
    });
    let cancel = (): void => {};
    const late = new Promise<void>((_, reject) => {
      cancel = timers.after(
        deadlineMs,
        () => {
          closeConnection(this.#native);
          reject(new CommitError(new StoreTimeoutError(deadlineMs)));
        },
        false,
      );
    });
    try {
      await Promise.race([this.#over, late]);
      return { kind: 'committed', ended: stored === 'ended' };
    } catch (error) {
      // Before its outcome was stored, nothing asked for the commit.
      const mayBeCommitted = error instanceof CommitError;
      return mayBeCommitted ? { kind: 'unknown', error: error.cause } : { kind: 'rolled_back', error };
    } finally {
      cancel();
    }
  }

  /**
   * Rolls back. Resolves when the server did that, or after the deadline. Never rejects.
   * @param isUsed the handler may still use the transaction: its connection is closed, if the client can do that
   */
  async rollBack(isUsed = false): Promise<void> {
    const { deadlineMs, timers } = this.#parts;
    this.#guarded.revoke();
    if (isUsed) closeConnection(this.#native);
    this.#end(undefined);
    let cancel = (): void => {};
    const late = new Promise<void>((resolve) => {
      cancel = timers.after(
        deadlineMs,
        () => {
          closeConnection(this.#native);
          resolve();
        },
        false,
      );
    });
    await Promise.race([this.#over.catch(() => {}), late]);
    cancel();
  }
}

/**
 * Begins a transaction and claims a key in it.
 * @returns the open transaction; or the reply, if the key was not claimed: the transaction is over then
 * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError, or the error of a conflict
 */
export async function openTransaction(
  parts: TransactionParts,
  key: KeyToClaim,
): Promise<{ readonly reply: KeyReply; readonly opened: OpenTransaction | undefined }> {
  const { schema, isolation, deadlineMs, timers, now } = parts;
  schema.checkOpen();
  if (!schema.database.isReady()) {
    throw new StoreUnavailableError(new Error('too many calls wait for a connection'), { sent: false });
  }
  let isGivenUp = false;
  let used: unknown;
  const limitMs = deadlineMs + key.waitMs;
  return new Promise((resolve, reject) => {
    const cancel = timers.after(
      limitMs,
      () => {
        isGivenUp = true;
        closeConnection(used);
        reject(new StoreTimeoutError(limitMs));
      },
      false,
    );
    const over = schema.database.transaction(async (connection, native) => {
      if (isGivenUp) throw ROLL_BACK;
      used = native;
      const reply = await claimKey(schema, connection, key, now());
      if (isGivenUp) throw ROLL_BACK;
      if (reply.kind !== 'claimed') {
        cancel();
        resolve({ reply, opened: undefined });
        throw ROLL_BACK;
      }
      const ending = await new Promise<Ending>((end) => {
        cancel();
        resolve({ reply, opened: new OpenTransaction(parts, reply.ticket, native, end, over) });
      });
      if (ending === undefined) throw ROLL_BACK;
      await ending(connection);
    }, isolation);
    over.catch((error: unknown) => {
      cancel();
      reject(explained(error));
    });
  });
}

/** The error for the caller. The error of a conflict stays, because the transaction can be repeated. */
function explained(error: unknown): unknown {
  if (error instanceof PostgresSetupError || isConflict(error)) return error;
  const problem = setupProblemOf(error);
  if (problem !== undefined) return new PostgresSetupError(`headgate's schema ${problem}`, error);
  // Nothing of the transaction remains, whatever was sent.
  return new StoreUnavailableError(error, { sent: false });
}
