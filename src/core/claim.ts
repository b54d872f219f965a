/** What the store keeps of a finished operation. */
export interface KeptResult {
  /** A short word for people and logs, such as the HTTP status. Always kept. */
  readonly status: string;
  /** What a replay answers with, opaque to the store; undefined where it was too large to keep (I7). */
  readonly value: string | undefined;
}

/** What happens to a claim whose owner died after it had asked for dispatch (I9): at most once, at least once, or ask somebody who knows. */
export type OnOrphan = 'reject' | 'reexecute' | 'reconcile';

/** What stands under a key. Plain data, never changed: a command yields another record. */
export interface ClaimRecord {
  readonly state: 'free' | 'in_progress' | 'completed';
  /** Of the request that the key belongs to, for as long as the record is kept. */
  readonly fingerprint: string;
  /** Token of the attempt that owns the claim, or that completed it; '' where nobody does. */
  readonly owner: string;
  /** One more at every claim. */
  readonly generation: number;
  /** The owner has asked for dispatch: from here on the effect may have happened. */
  readonly dispatched: boolean;
  /** The mark is an earlier owner's, taken over with the claim. */
  readonly inherited: boolean;
  /** In the store's milliseconds; past it the claim can be taken over. */
  readonly leaseUntil: number;
  /** In the store's milliseconds; past it the record is gone. Never before `leaseUntil`. */
  readonly keptUntil: number;
  /** Of a completed claim. */
  readonly result: KeptResult | undefined;
}

/** What every command says. */
export interface ClaimCommand {
  /** Of the one attempt that sends it; never shared by two requests, and never ''. */
  readonly token: string;
  readonly fingerprint: string;
  /** How long the record is kept after this command, in milliseconds (I8). */
  readonly retentionMs: number;
}

export interface BeginCommand extends ClaimCommand {
  readonly leaseMs: number;
  readonly onOrphan: OnOrphan;
  /** Sets the mark with the claim, which saves the owner a command; never on a claim that is taken over with its mark. */
  readonly dispatch: boolean;
  /** In the store's milliseconds: later than this the command does nothing. */
  readonly deadline?: number | undefined;
}

/** Of the owner, who has been told its generation. */
export interface HeldCommand extends ClaimCommand {
  readonly generation: number;
  readonly leaseMs: number;
}

export interface CompleteCommand extends ClaimCommand {
  readonly result: KeptResult;
}

export interface AbandonCommand extends ClaimCommand {
  /** Undefined after a `begin` that had no reply. */
  readonly generation: number | undefined;
}

/** What a store says to {@link BeginCommand}. */
export type BeginReply =
  | {
      readonly kind: 'claimed';
      readonly generation: number;
      /** Taken over from an owner that had asked for dispatch: it is to be dispatched explicitly. */
      readonly inherited: boolean;
      /** The mark is set, and it is this owner's. */
      readonly dispatched: boolean;
    }
  | { readonly kind: 'in_progress'; readonly remainingMs: number }
  | { readonly kind: 'orphan' }
  /** The key belongs to another request, whose fingerprint this is. */
  | { readonly kind: 'mismatch'; readonly fingerprint: string }
  | { readonly kind: 'settled'; readonly result: KeptResult }
  /** It came past its deadline. */
  | { readonly kind: 'late' };

/** `lost`: the claim is not, or no longer, the sender's. */
export type HeldReply =
  | { readonly kind: 'ok' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'settled'; readonly result: KeptResult };

/** `superseded`: another outcome came first, and is the one that counts. */
export type CompleteReply =
  | { readonly kind: 'ok' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'superseded'; readonly result: KeptResult };

/** What a store says to {@link AbandonCommand}. */
export type AbandonReply =
  | { readonly kind: 'released' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'settled'; readonly result: KeptResult };

/** What a command leaves under the key, and what its sender is told. The record is the very same object where nothing changed. */
export interface ClaimStep<Reply> {
  readonly record: ClaimRecord | undefined;
  readonly reply: Reply;
}

const LOST = { kind: 'lost' } as const;
const OK = { kind: 'ok' } as const;

/** The record as it is at `now`: undefined once its retention is over. */
export function keptAt(record: ClaimRecord | undefined, now: number): ClaimRecord | undefined {
  return record !== undefined && now < record.keptUntil ? record : undefined;
}

/** Claims the key, or says what is in the way. */
export function begin(found: ClaimRecord | undefined, command: BeginCommand, now: number): ClaimStep<BeginReply> {
  const record = keptAt(found, now);
  if (command.deadline !== undefined && now > command.deadline) return { record, reply: { kind: 'late' } };
  if (record === undefined || (record.state === 'free' && record.fingerprint === command.fingerprint)) {
    return claim(record, command, now, false);
  }
  if (record.fingerprint !== command.fingerprint) {
    return { record, reply: { kind: 'mismatch', fingerprint: record.fingerprint } };
  }
  if (record.state === 'completed') return { record, reply: { kind: 'settled', result: resultOf(record) } };
  // Its reply had been lost: the claim stands as it is, mark and all.
  if (record.owner === command.token) return claimed(renewed(record, command, now));
  if (now < record.leaseUntil) {
    return { record, reply: { kind: 'in_progress', remainingMs: record.leaseUntil - now } };
  }
  if (!record.dispatched) return claim(record, command, now, false);
  return command.onOrphan === 'reject' ? { record, reply: { kind: 'orphan' } } : claim(record, command, now, true);
}

/** Renews the lease. */
export function extend(found: ClaimRecord | undefined, command: HeldCommand, now: number): ClaimStep<HeldReply> {
  const record = keptAt(found, now);
  if (!isOwn(record, command)) return { record, reply: settledOrLost(record, command) };
  return { record: renewed(record, command, now), reply: OK };
}

/** Marks the claim: after `ok` the effect may happen. */
export function dispatch(found: ClaimRecord | undefined, command: HeldCommand, now: number): ClaimStep<HeldReply> {
  const record = keptAt(found, now);
  if (!isOwn(record, command)) return { record, reply: settledOrLost(record, command) };
  return { record: { ...renewed(record, command, now), dispatched: true, inherited: false }, reply: OK };
}

/** Keeps the outcome. The first one wins, whoever owns the claim by now. */
export function complete(
  found: ClaimRecord | undefined,
  command: CompleteCommand,
  now: number,
): ClaimStep<CompleteReply> {
  const record = keptAt(found, now);
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

/** Gives the key back, where the effect is known not to have happened. A mark that was inherited stays: its outcome is still unknown. */
export function abandon(found: ClaimRecord | undefined, command: AbandonCommand, now: number): ClaimStep<AbandonReply> {
  const record = keptAt(found, now);
  if (!isOwn(record, command)) return { record, reply: settledOrLost(record, command) };
  const released = { ...record, owner: '', leaseUntil: now, keptUntil: now + command.retentionMs };
  return {
    record: record.inherited ? released : { ...released, state: 'free', dispatched: false },
    reply: { kind: 'released' },
  };
}

function claim(
  record: ClaimRecord | undefined,
  { token, fingerprint, leaseMs, retentionMs, dispatch: marks }: BeginCommand,
  now: number,
  inherits: boolean,
): ClaimStep<BeginReply> {
  return claimed({
    state: 'in_progress',
    fingerprint,
    owner: token,
    generation: (record?.generation ?? 0) + 1,
    dispatched: inherits || marks,
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

/** Fenced by token, generation and fingerprint (I10); a lease that is over does not matter as long as nobody has taken the claim. */
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
