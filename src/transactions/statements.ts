import type { KeptResult } from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';
import { namesOf, packText, unpackText } from '../stores/postgres/claim-names.ts';
import { fieldsOf, integer, parse, resultOf, unexpected } from '../stores/postgres/claim-reply.ts';
import type { Connection } from '../stores/postgres/database.ts';
import type { Schema } from '../stores/postgres/schema.ts';

/** A key to claim in a transaction. */
export interface KeyToClaim {
  readonly id: ClaimId;
  /** Of one attempt. */
  readonly token: string;
  readonly fingerprint: string;
  readonly retentionMs: number;
  /** How long another transaction that claimed the key is waited for. */
  readonly waitMs: number;
  /** Whether a new key is refused. */
  readonly full: boolean;
  /** How long the transaction may run no statement. The server ends it then, if this process does not. */
  readonly idleMs?: number;
}

/** A claim of an open transaction. Plain data. */
export interface Ticket {
  readonly id: ClaimId;
  readonly token: string;
  /** The place of its row. */
  readonly place: string;
  /** The number of its transaction. */
  readonly xact: string;
}

/** The reply to a claim. */
export type KeyReply =
  | {
      readonly kind: 'claimed';
      readonly ticket: Ticket;
      readonly isNew: boolean;
      readonly forgotten: string | undefined;
    }
  | { readonly kind: 'settled'; readonly result: KeptResult; readonly owner: string }
  | { readonly kind: 'mismatch'; readonly fingerprint: string }
  | { readonly kind: 'in_progress'; readonly remainingMs: number }
  | { readonly kind: 'orphan' }
  | { readonly kind: 'full' };

// Each parameter stands in them once, in order, because some clients only know `?`.
const CLAIM = 'select headgate.claim_in_transaction_1($1::text, $2::text::bigint, $3::text::bigint) as reply';
const COMPLETE = 'select headgate.complete_in_transaction_1($1::text, $2::text) as reply';
const ANY_LENGTH = String(Number.MAX_SAFE_INTEGER);

/** Claims a key for the transaction of the connection. */
export async function claimKey(
  schema: Schema,
  connection: Connection,
  { id, token, fingerprint, retentionMs: retention, waitMs: wait, full, idleMs: idle }: KeyToClaim,
  now: string | null,
): Promise<KeyReply> {
  const packed = { token: packText(token), fingerprint: packText(fingerprint) };
  const command = JSON.stringify({ ...namesOf(id), ...packed, retention, wait, full, idle });
  const rows = await schema.query(CLAIM, [command, ANY_LENGTH, now], undefined, connection);
  const fields = fieldsOf(parse(onlyValue(rows)));
  switch (fields.kind) {
    case 'claimed': {
      const ticket = { id, token, place: textOf(fields.place), xact: textOf(fields.xact) };
      const forgotten = fields.forgotten == null ? undefined : unpackText(fields.forgotten);
      return { kind: 'claimed', ticket, isNew: fields.isNew === true, forgotten };
    }
    case 'settled':
      return { kind: 'settled', result: resultOf(fields), owner: fields.owner === '' ? '' : unpackText(fields.owner) };
    case 'mismatch':
      return { kind: 'mismatch', fingerprint: unpackText(fields.fingerprint) };
    case 'in_progress':
      return { kind: 'in_progress', remainingMs: integer(fields.remaining) };
    case 'orphan':
    case 'full':
      return { kind: fields.kind };
    default:
      throw unexpected();
  }
}

/** Stores the outcome of a claimed key. `lost`: its transaction was rolled back; `ended`: it was committed before. */
export async function completeKey(
  schema: Schema,
  connection: Connection,
  { id, token, place, xact }: Ticket,
  { status, value }: KeptResult,
): Promise<'ok' | 'lost' | 'ended'> {
  const bytes = value === undefined ? undefined : Buffer.byteLength(value);
  const command = { id: namesOf(id).id, token: packText(token), place, xact, status: packText(status), bytes };
  const values = [JSON.stringify(command), value === undefined ? null : packText(value)];
  const reply = onlyValue(await schema.query(COMPLETE, values, undefined, connection));
  if (reply !== 'ok' && reply !== 'lost' && reply !== 'ended') throw unexpected();
  return reply;
}

/** Clients can rename columns, so this does not ask for the name. */
function onlyValue(rows: readonly object[]): unknown {
  return Object.values(rows[0] ?? {})[0];
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw unexpected();
  return value;
}
