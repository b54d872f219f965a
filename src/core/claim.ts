/** The store's record of a finished operation. */
export interface KeptResult {
  /** A short word for people and logs, such as the HTTP status. Always stored. */
  readonly status: string;
  /** The value that a replay returns. The store does not interpret it. Undefined if it was too large to store (I7). */
  readonly value: string | undefined;
}

/**
 * What `begin` does with an orphan, a claim whose owner died after it was dispatched (I9). `reject`: the operation runs
 * at most once. `reexecute`: it runs at least once. `reconcile`: a new owner takes the claim over and asks the
 * downstream service what happened.
 */
export type OnOrphan = 'reject' | 'reexecute' | 'reconcile';

/** The record under an idempotency key. Plain data, never modified: each command returns a new record. */
export interface ClaimRecord {
  readonly state: 'free' | 'in_progress' | 'completed';
  /** Fingerprint of the request that the key belongs to. It does not change until the record expires. */
  readonly fingerprint: string;
  /** Token of the attempt that owns or completed the claim; '' if the claim is without an owner. */
  readonly owner: string;
  /** Increases by one with every new owner. */
  readonly generation: number;
  /** The claim was dispatched: the effect may have happened. */
  readonly dispatched: boolean;
  /** The dispatch was an earlier owner's; the current owner took the claim over. */
  readonly inherited: boolean;
  /** Time in milliseconds on the store's clock from which another attempt can take the claim over. */
  readonly leaseUntil: number;
  /**
   * Time in milliseconds on the store's clock at which the retention is over. Never before `leaseUntil`. The record
   * expires then, unless its outcome is unknown: it was dispatched, and has none.
   */
  readonly keptUntil: number;
  /** Set once the claim is completed. */
  readonly result: KeptResult | undefined;
}

/** A step of a claim that can carry a note. */
export type NotedStep = 'dispatch' | 'complete' | 'abandon';

/** Fields of every command. */
export interface ClaimCommand {
  /** Identifies the one attempt that sends the command. Two requests never share a token, and it is never ''. */
  readonly token: string;
  readonly fingerprint: string;
  /** Milliseconds from this command until the retention of the record is over (I8). */
  readonly retentionMs: number;
}

/** Claims the key. */
export interface BeginCommand extends ClaimCommand {
  /** Length of the lease in milliseconds. */
  readonly leaseMs: number;
  readonly onOrphan: OnOrphan;
  /** Dispatches with the claim, which saves a command. Ignored if an orphan is taken over. */
  readonly dispatch: boolean;
  /** Time in milliseconds on the store's clock. A command that arrives later does nothing. */
  readonly deadline?: number | undefined;
}

/** A command of the owner, which knows its generation from the reply to `begin`. */
export interface HeldCommand extends ClaimCommand {
  readonly generation: number;
  /** Length of the new lease in milliseconds. */
  readonly leaseMs: number;
  /** Only of `dispatch`, and only if `notes` of the store has it: a JSON text for the rows of the step. */
  readonly note?: string | undefined;
}

/** Stores the outcome. */
export interface CompleteCommand extends ClaimCommand {
  readonly result: KeptResult;
  /** A JSON text, as of {@link HeldCommand}. */
  readonly note?: string | undefined;
}

/** Releases the claim without an outcome. */
export interface AbandonCommand extends ClaimCommand {
  /**
   * Milliseconds from this command until the record of a released claim expires, if that is before `retentionMs` (I6).
   * A claim that becomes an orphan again is stored for `retentionMs`.
   */
  readonly releasedRetentionMs: number;
  /** Undefined if the reply to `begin` was lost. */
  readonly generation: number | undefined;
  /** A JSON text, as of {@link HeldCommand}. */
  readonly note?: string | undefined;
}

/** A store's reply to {@link BeginCommand}. */
export type BeginReply =
  | {
      readonly kind: 'claimed';
      readonly generation: number;
      /** Taken over from an owner that had dispatched. The new owner must dispatch explicitly. */
      readonly inherited: boolean;
      /** This owner dispatched the claim. */
      readonly dispatched: boolean;
    }
  /** Another attempt owns the claim. Its lease expires in `remainingMs` milliseconds. */
  | { readonly kind: 'in_progress'; readonly remainingMs: number }
  /** The owner died after the dispatch, and `onOrphan` is `reject`. */
  | { readonly kind: 'orphan' }
  /** The key belongs to another request; `fingerprint` is that request's. */
  | { readonly kind: 'mismatch'; readonly fingerprint: string }
  /** The operation completed. */
  | { readonly kind: 'settled'; readonly result: KeptResult }
  /** The command arrived after its deadline. */
  | { readonly kind: 'late' };

/** A store's reply to {@link HeldCommand}. `lost`: the sender does not own the claim (any more). */
export type HeldReply =
  | { readonly kind: 'ok' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'settled'; readonly result: KeptResult };

/** A store's reply to {@link CompleteCommand}. `superseded`: another outcome came first, and that one counts. */
export type CompleteReply =
  | {
      readonly kind: 'ok';
      /** True if the store could not take the value in time, and stored the outcome without it (I7). */
      readonly valueDropped?: boolean | undefined;
    }
  | { readonly kind: 'lost' }
  | { readonly kind: 'superseded'; readonly result: KeptResult };

/** A store's reply to {@link AbandonCommand}. */
export type AbandonReply =
  | { readonly kind: 'released' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'settled'; readonly result: KeptResult };

/** The record and the reply after a command. `record` is the same object as before if nothing changed. */
export interface ClaimStep<Reply> {
  readonly record: ClaimRecord | undefined;
  readonly reply: Reply;
}

const LOST = { kind: 'lost' } as const;
const OK = { kind: 'ok' } as const;

/** Returns the record, or undefined if it expired at `now`. A record without an outcome never expires (I9). */
export function unexpired(record: ClaimRecord | undefined, now: number): ClaimRecord | undefined {
  return record !== undefined && (now < record.keptUntil || isUnresolved(record)) ? record : undefined;
}

/** Whether the claim was dispatched, and its outcome is not known. */
export function isUnresolved({ state, dispatched }: Pick<ClaimRecord, 'state' | 'dispatched'>): boolean {
  return state === 'in_progress' && dispatched;
}

/**
 * Whether a store that lacks room for a claim of the same scope may forget this record (I13): its outcome is unknown,
 * and its lease and its retention are over.
 */
export function isForgettable(record: ClaimRecord, now: number): boolean {
  return isUnresolved(record) && now >= record.keptUntil;
}

/** Claims the key, or replies why that is not possible. */
export function begin(found: ClaimRecord | undefined, command: BeginCommand, now: number): ClaimStep<BeginReply> {
  const record = unexpired(found, now);
  if (now > (command.deadline ?? Number.POSITIVE_INFINITY)) return { record, reply: { kind: 'late' } };
  if (record === undefined || (record.state === 'free' && record.fingerprint === command.fingerprint)) {
    return claim(record, command, now, false);
  }
  if (record.fingerprint !== command.fingerprint) {
    return { record, reply: { kind: 'mismatch', fingerprint: record.fingerprint } };
  }
  if (record.state === 'completed') return { record, reply: { kind: 'settled', result: resultOf(record) } };
  // The owner repeats a `begin` whose reply was lost. The claim stays as it is, dispatched or not.
  if (record.owner === command.token) return claimed(renewed(record, command, now));
  if (now < record.leaseUntil) {
    return { record, reply: { kind: 'in_progress', remainingMs: record.leaseUntil - now } };
  }
  if (!record.dispatched) return claim(record, command, now, false);
  return command.onOrphan === 'reject' ? { record, reply: { kind: 'orphan' } } : claim(record, command, now, true);
}

/** Renews the owner's lease. */
export function extend(found: ClaimRecord | undefined, command: HeldCommand, now: number): ClaimStep<HeldReply> {
  const record = unexpired(found, now);
  if (!isOwn(record, command)) return { record, reply: settledOrLost(record, command) };
  return { record: renewed(record, command, now), reply: OK };
}

/** Marks the claim as dispatched: the effect may happen once the owner gets the `ok`. */
export function dispatch(found: ClaimRecord | undefined, command: HeldCommand, now: number): ClaimStep<HeldReply> {
  const record = unexpired(found, now);
  if (!isOwn(record, command)) return { record, reply: settledOrLost(record, command) };
  return { record: { ...renewed(record, command, now), dispatched: true, inherited: false }, reply: OK };
}

/** Stores the outcome. The first outcome wins, even if another attempt owns the claim by now. */
export function complete(
  found: ClaimRecord | undefined,
  command: CompleteCommand,
  now: number,
): ClaimStep<CompleteReply> {
  const record = unexpired(found, now);
  const { token, fingerprint, result, retentionMs } = command;
  if (record !== undefined && record.fingerprint !== fingerprint) return { record, reply: LOST };
  if (record?.state === 'completed') {
    return { record, reply: record.owner === token ? OK : { kind: 'superseded', result: resultOf(record) } };
  }
  const completed: ClaimRecord = {
    state: 'completed',
    fingerprint,
    owner: token,
    generation: record?.generation ?? 0,
    dispatched: false,
    inherited: false,
    leaseUntil: now,
    keptUntil: now + retentionMs,
    result,
  };
  return { record: completed, reply: OK };
}

/**
 * Releases the key. The owner sends this if it knows that the effect did not happen. An inherited dispatch stays,
 * because the earlier owner's effect is still unknown.
 */
export function abandon(found: ClaimRecord | undefined, command: AbandonCommand, now: number): ClaimStep<AbandonReply> {
  const record = unexpired(found, now);
  if (!isOwn(record, command)) return { record, reply: settledOrLost(record, command) };
  const { retentionMs, releasedRetentionMs } = command;
  const released = { ...record, owner: '', leaseUntil: now };
  return {
    // Nothing happened under a released claim, so only its fingerprint is stored, and only for minutes (I6).
    record: record.inherited
      ? { ...released, keptUntil: now + retentionMs }
      : { ...released, state: 'free', dispatched: false, keptUntil: now + Math.min(releasedRetentionMs, retentionMs) },
    reply: { kind: 'released' },
  };
}

function claim(
  record: ClaimRecord | undefined,
  { token, fingerprint, leaseMs, retentionMs, dispatch: dispatches }: BeginCommand,
  now: number,
  inherits: boolean,
): ClaimStep<BeginReply> {
  return claimed({
    state: 'in_progress',
    fingerprint,
    owner: token,
    generation: (record?.generation ?? 0) + 1,
    dispatched: inherits || dispatches,
    inherited: inherits,
    leaseUntil: now + leaseMs,
    keptUntil: now + Math.max(leaseMs, retentionMs),
    result: undefined,
  });
}

function claimed(record: ClaimRecord): ClaimStep<BeginReply> {
  const { generation, inherited, dispatched } = record;
  return { record, reply: { kind: 'claimed', generation, inherited, dispatched: dispatched && !inherited } };
}

function renewed(record: ClaimRecord, { leaseMs, retentionMs }: BeginCommand | HeldCommand, now: number): ClaimRecord {
  return { ...record, leaseUntil: now + leaseMs, keptUntil: now + Math.max(leaseMs, retentionMs) };
}

/**
 * Whether the sender owns the claim: token, generation and fingerprint must match, so that a stale owner cannot write
 * (I10). An expired lease does not matter as long as no other attempt took the claim over.
 */
function isOwn(
  record: ClaimRecord | undefined,
  { token, generation, fingerprint }: HeldCommand | AbandonCommand,
): record is ClaimRecord {
  return (
    record?.state === 'in_progress' &&
    record.fingerprint === fingerprint &&
    record.owner === token &&
    (generation === undefined || record.generation === generation)
  );
}

function settledOrLost(
  record: ClaimRecord | undefined,
  { fingerprint }: ClaimCommand,
): { readonly kind: 'settled'; readonly result: KeptResult } | typeof LOST {
  return record?.state === 'completed' && record.fingerprint === fingerprint
    ? { kind: 'settled', result: resultOf(record) }
    : LOST;
}

function resultOf(record: ClaimRecord): KeptResult {
  return record.result as KeptResult;
}
