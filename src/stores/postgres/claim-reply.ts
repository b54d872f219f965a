import type { AbandonReply, BeginReply, CompleteReply, HeldReply, KeptResult } from '../../core/claim.ts';
import type { ClaimView, ListedClaim } from '../../core/ports.ts';
import { unpackText } from './claim-names.ts';

/** A part of an answer: the fields of one reply. */
export type Fields = Readonly<Record<string, unknown>>;

/** A reply, and the server's time in milliseconds. */
export interface Timed<Reply> {
  readonly now: number;
  readonly reply: Reply;
  /** Set if the reply left out a long value: its length in bytes. */
  readonly omittedBytes: number | undefined;
}

/** The reply to a begin, and what it says about the scope. */
export interface BegunClaim {
  readonly reply: BeginReply | { readonly kind: 'full' };
  /** The claim is a new row. */
  readonly isNew: boolean;
  /** The key of a claim of unknown outcome that made room. */
  readonly forgotten: string | undefined;
}

/**
 * Reads the answer of a function.
 * @throws TypeError like all functions here: anything that the functions cannot return is an error
 */
export function parse(answer: unknown): unknown {
  if (typeof answer !== 'string') throw unexpected();
  return JSON.parse(answer);
}

export function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw unexpected();
  return value as Fields;
}

export function readBegin(fields: Fields): Timed<BegunClaim> {
  const isNew = fields.isNew === true;
  const forgotten = fields.forgotten == null ? undefined : unpackText(fields.forgotten);
  const begun = (reply: BegunClaim['reply']) => timed(fields, { reply, isNew, forgotten });
  switch (fields.kind) {
    case 'claimed':
      return begun({
        kind: 'claimed',
        generation: integer(fields.generation),
        inherited: flag(fields.inherited),
        dispatched: flag(fields.dispatched),
      });
    case 'in_progress':
      return begun({ kind: 'in_progress', remainingMs: integer(fields.remaining) });
    case 'mismatch':
      return begun({ kind: 'mismatch', fingerprint: unpackText(fields.fingerprint) });
    case 'settled':
      return begun({ kind: 'settled', result: resultOf(fields) });
    case 'orphan':
    case 'late':
    case 'full':
      return begun({ kind: fields.kind });
    default:
      throw unexpected();
  }
}

/** Reads the reply to `extend` or `dispatch`. */
export const readHeld = (fields: Fields): Timed<HeldReply> => readOutcome(fields, 'ok', 'settled');
export const readComplete = (fields: Fields): Timed<CompleteReply> => readOutcome(fields, 'ok', 'superseded');
export const readAbandon = (fields: Fields): Timed<AbandonReply> => readOutcome(fields, 'released', 'settled');

/** Reads the reply to a command that was done, or found another owner, or (`known`) the outcome of the operation. */
function readOutcome<Done extends string, Known extends string>(fields: Fields, done: Done, known: Known) {
  const { kind } = fields;
  if (kind === done) return timed(fields, { kind: done });
  if (kind === 'lost') return timed(fields, { kind: 'lost' as const });
  if (kind === known) return timed(fields, { kind: known, result: resultOf(fields) });
  throw unexpected();
}

export function readInspect(fields: Fields): Timed<ClaimView> {
  const { state, owner } = fields;
  return timed(fields, {
    state: stateOf(state),
    fingerprint: unpackText(fields.fingerprint),
    owner: owner === '' ? '' : unpackText(owner),
    generation: integer(fields.generation),
    dispatched: flag(fields.dispatched),
    inherited: flag(fields.inherited),
    result: state === 'completed' ? resultOf(fields) : undefined,
    leaseMs: state === 'in_progress' ? Math.max(0, integer(fields.lease)) : 0,
    keptMs: Math.max(0, integer(fields.kept)),
  });
}

/** A row of a page. Undefined if its claim expired. */
export function readListed(fields: Fields): ListedClaim | undefined {
  const { state, status, bytes } = fields;
  const dispatched = flag(fields.dispatched);
  const keptMs = Math.max(0, integer(fields.kept));
  if (keptMs === 0 && !(state === 'in_progress' && dispatched)) return undefined;
  return {
    scope: unpackText(fields.scope),
    key: unpackText(fields.key),
    state: stateOf(state),
    generation: integer(fields.generation),
    dispatched,
    inherited: flag(fields.inherited),
    leaseMs: state === 'in_progress' ? Math.max(0, integer(fields.lease)) : 0,
    keptMs,
    status: status == null ? undefined : unpackText(status),
    valueBytes: bytes == null ? undefined : integer(bytes),
  };
}

/** The stored outcome. Without its value if the reply left it out. */
export function resultOf({ status, value }: Fields): KeptResult {
  return { status: unpackText(status), value: value == null ? undefined : unpackText(value) };
}

/** The length of a value that the reply left out. */
function omittedBytesOf({ value, bytes }: Fields): number | undefined {
  return value == null && bytes != null ? integer(bytes) : undefined;
}

/** A safe integer. */
export function integer(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw unexpected();
  return value as number;
}

/** The message does not show the reply, because it can contain a client's stored response. */
export function unexpected(): TypeError {
  return new TypeError('unexpected reply of PostgreSQL to a command on a claim');
}

function timed<Reply>(fields: Fields, reply: Reply): Timed<Reply> {
  return { now: integer(fields.now), reply, omittedBytes: omittedBytesOf(fields) };
}

function flag(value: unknown): boolean {
  if (typeof value !== 'boolean') throw unexpected();
  return value;
}

function stateOf(state: unknown): ClaimView['state'] {
  if (state === 'free' || state === 'in_progress' || state === 'completed') return state;
  throw unexpected();
}
