import { ScopeFullError } from '../../base/errors.ts';
import type {
  AbandonCommand,
  AbandonReply,
  BeginCommand,
  BeginReply,
  ClaimCommand,
  CompleteCommand,
  CompleteReply,
  HeldCommand,
  HeldReply,
  NotedStep,
} from '../../core/claim.ts';
import type { ClaimId, ClaimPage, ClaimStore, ClaimView, ReadyOptions } from '../../core/ports.ts';
import { wrongCursor } from '../shared/claim-cursor.ts';
import type { ClaimStoreStats, ServerClaimStore } from '../shared/server-claim-store.ts';
import { ClaimCalls, MAX_SMALL_BYTES } from './claim-calls.ts';
import { packText } from './claim-names.ts';
import { fillClaimOptions, type PostgresClaimStoreOptions } from './claim-options.ts';
import { readAbandon, readBegin, readComplete, readHeld } from './claim-reply.ts';
import type { RowStatements } from './claim-rows.ts';
import { ClaimTable } from './claim-table.ts';
import type { PostgresClient } from './client.ts';
import { PostgresSetupError, RowsFailedError, rowsErrorOf } from './errors.ts';
import { Server } from './server.ts';

const CHECK_ROWS = 'select headgate.check_rows_1($1::text)';

/** Figures of a PostgreSQL claim store since its start, for operators. */
export type PostgresClaimStoreStats = ClaimStoreStats;

/**
 * A {@link ClaimStore} in PostgreSQL, which any number of processes can share. Its methods throw `StoreTimeoutError`, or
 * `StoreUnavailableError` with the reason as its cause. The command may have been executed anyway, unless `sent` of the
 * error is false. They throw `PostgresSetupError` if the set-up is wrong, and `ResultUnavailableError` if the claim is
 * completed, but its large result cannot be read.
 */
export interface PostgresClaimStore extends ServerClaimStore {
  /**
   * Resolves after the first answer of PostgreSQL. It also plans the statements of `rows`, and executes none.
   * @throws PostgresSetupError at once, StoreUnavailableError after `timeoutMs`, or the reason of the signal
   */
  ready(options?: ReadyOptions): Promise<void>;
  /** Returns the current figures. */
  stats(): PostgresClaimStoreStats;
}

/**
 * Creates a claim store in PostgreSQL. It stores one row per idempotency key. A command is one call of a function, and
 * uses the server's clock. Commands of one turn of the event loop are sent together. Call `migrate` once before. The
 * store never connects, configures or closes the client.
 * @throws OptionError
 */
export function createPostgresClaimStore(
  client: PostgresClient,
  options: PostgresClaimStoreOptions = {},
): PostgresClaimStore {
  const filled = fillClaimOptions(options);
  const server = new Server(client, {
    ...filled,
    store: 'claims',
    what: 'idempotency keys',
    effect: 'requests with a key are refused, or handled without it (onStoreFailure)',
  });
  const largeServer = new Server(client, {
    ...filled,
    store: 'large_values',
    what: 'large results',
    effect: 'they are neither stored nor replayed',
  });
  const calls = new ClaimCalls({ ...filled, server, largeServer });
  // A count or a sweep that fails says nothing about requests, so it does not stop them, nor a list.
  const quiet = { store: 'claims', what: '', effect: '', onError: undefined, log: () => {} } as const;
  const table = new ClaimTable(new Server(client, { ...filled, ...quiet }), filled.maxClaimsPerScope);
  return new PostgresClaims({ server, largeServer, calls, table, max: filled.maxClaimsPerScope, rows: filled.rows });
}

interface Parts {
  readonly server: Server;
  readonly largeServer: Server;
  readonly calls: ClaimCalls;
  readonly table: ClaimTable;
  readonly max: number;
  readonly rows: RowStatements | undefined;
}

class PostgresClaims implements PostgresClaimStore {
  readonly synchronous = false;
  readonly notes: readonly NotedStep[] | undefined;
  readonly #parts: Parts;
  #lateBegins = 0;
  #refusedInScope = 0;
  #dropped = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.notes = parts.rows && (Object.keys(parts.rows) as NotedStep[]);
  }

  async begin(id: ClaimId, command: BeginCommand): Promise<BeginReply> {
    const { calls, table, max } = this.#parts;
    const deadline = command.deadline ?? (command.dispatch ? calls.deadline() : undefined);
    // A command without a deadline could dispatch after its sender gave it up. That would leave an orphan.
    const dispatch = command.dispatch && deadline !== undefined;
    const { leaseMs: lease, onOrphan } = command;
    const start = { ...fieldsOf('begin', command), lease, onOrphan, full: table.isFull(id.scope) };
    // It asks for the value of a completed claim later, when the deadline can be over. Without the dispatch it needs
    // none.
    const again = { ...start, dispatch: false, deadline: command.deadline };
    const begun = await calls.run(id, { ...start, dispatch, deadline }, readBegin, again);
    table.begun(id, begun);
    const { reply } = begun;
    if (reply.kind === 'late') this.#lateBegins++;
    if (reply.kind !== 'full') return reply;
    this.#refusedInScope++;
    throw new ScopeFullError(max, table.retryAfterMs(id.scope));
  }

  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const { leaseMs: lease, generation } = command;
    return this.#parts.calls.run(id, { ...fieldsOf('extend', command), lease, generation }, readHeld);
  }

  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply> {
    const { leaseMs: lease, generation, note } = command;
    return this.#parts.calls.run(id, { ...fieldsOf('dispatch', command), lease, generation, note }, readHeld);
  }

  async complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply> {
    const { calls } = this.#parts;
    const { status, value } = command.result;
    const { note } = command;
    const fields = { ...fieldsOf('complete', command), status: packText(status), note };
    if (value === undefined) return calls.run(id, fields, readComplete);
    const bytes = Buffer.byteLength(value);
    const withBytes = { ...fields, bytes };
    if (value.length < MAX_SMALL_BYTES && (note?.length ?? 0) < MAX_SMALL_BYTES)
      return calls.run(id, { ...withBytes, value: packText(value) }, readComplete, withBytes);
    try {
      const noteBytes = note === undefined ? 0 : Buffer.byteLength(note);
      return await calls.runLarge(id, withBytes, packText(value), readComplete, bytes + noteBytes);
    } catch (error) {
      if (error instanceof RowsFailedError) throw error;
      // The claim must not wait for the value. If the server does not answer at all, this throws, and the sender tries
      // again in the background, with the value. If the value arrives first after all, it stays: the first outcome wins.
      const reply = await calls.run(id, fields, readComplete);
      if (reply.kind !== 'ok') return reply;
      this.#dropped++;
      return { kind: 'ok', valueDropped: true };
    }
  }

  abandon(id: ClaimId, command: AbandonCommand): Promise<AbandonReply> {
    const { generation, releasedRetentionMs: released, note } = command;
    return this.#parts.calls.run(id, { ...fieldsOf('abandon', command), generation, released, note }, readAbandon);
  }

  onForgotten(listener: (id: ClaimId) => void): () => void {
    return this.#parts.table.onForgotten(listener);
  }

  inspect(id: ClaimId): Promise<ClaimView | undefined> {
    return this.#parts.table.inspect(id);
  }

  async list(cursor: string | undefined, count: number): Promise<ClaimPage> {
    if (cursor !== undefined && !/^[0-9a-f]{64}$/.test(cursor)) throw wrongCursor(cursor);
    return this.#parts.table.list(cursor ?? '', count);
  }

  async ready(options?: ReadyOptions): Promise<void> {
    const { server, rows } = this.#parts;
    await server.ready(options);
    if (rows === undefined) return;
    try {
      await server.query(CHECK_ROWS, [JSON.stringify(rows)], server.deadlineMs);
    } catch (error) {
      const failure = rowsErrorOf(error);
      throw failure === undefined ? error : new PostgresSetupError(failure.message, failure);
    }
  }

  stats(): PostgresClaimStoreStats {
    const { calls, server, largeServer, table } = this.#parts;
    return {
      calls: calls.count,
      timeouts: calls.timeouts,
      lateBegins: this.#lateBegins,
      refusedInScope: this.#refusedInScope,
      forgottenUnresolved: table.forgotten,
      breaker: server.breaker.state,
      large: {
        bytes: calls.large.bytes,
        timeouts: largeServer.breaker.timeouts,
        refused: calls.large.refused,
        dropped: this.#dropped,
        breaker: largeServer.breaker.state,
      },
    };
  }
}

/** The first fields of every command. */
function fieldsOf(command: string, { token, fingerprint, retentionMs: retention }: ClaimCommand) {
  return { command, token: packText(token), fingerprint: packText(fingerprint), retention };
}
