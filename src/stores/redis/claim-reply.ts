import type { AbandonReply, BeginReply, CompleteReply, HeldReply, KeptResult } from '../../core/claim.ts';
import type { ClaimView, ListedClaim } from '../../core/ports.ts';

/** A reply of `claim.lua`, and the server's time in milliseconds. */
export interface Timed<Reply> {
  readonly now: number;
  readonly reply: Reply;
  /** Set if the reply left out a long value: its length in bytes. */
  readonly omittedBytes: number | undefined;
}

/** The key is without a record, and its scope may not add one. */
export interface Full {
  readonly kind: 'full';
}

/**
 * Packs a text for the server. The result is never '', and different texts have different results. A lone surrogate
 * would reach the server as the same replacement character as any other. So a text with one is sent as JSON, which
 * escapes it.
 */
export function packText(text: string): string {
  return /\p{Surrogate}/u.test(text) ? `~${JSON.stringify(text)}` : `=${text}`;
}

/** The text that {@link packText} packed, as a part of a reply. */
export function unpackText(part: unknown): string {
  return unpack(textOf(part));
}

/**
 * @throws TypeError like all functions here: a reply is untrusted, and anything that the script cannot return is an
 * error
 */
export function readBeginReply(reply: unknown): Timed<BeginReply | Full> {
  const parts = new Parts(reply);
  switch (parts.word) {
    case 'claimed':
      return parts.end({
        kind: 'claimed',
        generation: parts.integer(1),
        inherited: parts.flag(),
        dispatched: parts.flag(),
      });
    case 'in_progress':
      return parts.end({ kind: 'in_progress', remainingMs: parts.integer(1) });
    case 'mismatch':
      return parts.end({ kind: 'mismatch', fingerprint: parts.packed() });
    case 'settled':
      return parts.end({ kind: 'settled', result: parts.result() });
    case 'orphan':
    case 'late':
    case 'full':
      return parts.end({ kind: parts.word });
    default:
      throw unexpected();
  }
}

/** Reads the reply to `extend` or `dispatch`. */
export const readHeldReply = (reply: unknown): Timed<HeldReply> => readOutcome(reply, 'ok', 'settled');
export const readCompleteReply = (reply: unknown): Timed<CompleteReply> => readOutcome(reply, 'ok', 'superseded');

/** Reads the reply to `abandon`. `orphaned`: released, but an earlier owner's outcome is still unknown. */
export function readAbandonReply(reply: unknown): Timed<AbandonReply | { readonly kind: 'orphaned' }> {
  const parts = new Parts(reply);
  return parts.word === 'orphaned' ? parts.end({ kind: parts.word }) : readOutcome(reply, 'released', 'settled');
}

/** Reads the reply to `forget`. */
export function readForgetReply(reply: unknown): Timed<'forgotten' | 'stays' | 'absent'> {
  const parts = new Parts(reply);
  if (parts.word !== 'forgotten' && parts.word !== 'stays' && parts.word !== 'absent') throw unexpected();
  return parts.end(parts.word);
}

/** Reads the reply to a command that was done, or found another owner, or (`known`) the outcome of the operation. */
function readOutcome<Done extends string, Known extends string>(reply: unknown, done: Done, known: Known) {
  const parts = new Parts(reply);
  if (parts.word === done) return parts.end({ kind: done });
  if (parts.word === 'lost') return parts.end({ kind: 'lost' as const });
  if (parts.word === known) return parts.end({ kind: known, result: parts.result() });
  throw unexpected();
}

export function readInspectReply(reply: unknown): Timed<ClaimView | undefined> {
  const parts = new Parts(reply);
  if (parts.word === 'absent') return parts.end(undefined);
  const state = parts.word === 'found' ? parts.text() : '';
  if (!isState(state)) throw unexpected();
  const fingerprint = parts.packed();
  const owner = parts.optional() ?? '';
  const generation = parts.integer(0);
  const dispatched = parts.flag();
  const inherited = parts.flag();
  const result = state === 'completed' ? parts.result() : parts.noResult();
  return parts.end({
    state,
    fingerprint,
    owner,
    generation,
    dispatched,
    inherited,
    result,
    leaseMs: parts.integer(0),
    keptMs: parts.integer(0),
  });
}

/** The reply of `claims-list.lua` about one key. Undefined if there is no claim, or if headgate did not write it. */
export function readListed(reply: unknown): Omit<ListedClaim, 'scope' | 'key'> | undefined {
  try {
    return listedIn(reply);
  } catch {
    // As an error it would end each scan at this key.
    return undefined;
  }
}

function listedIn(reply: unknown): ReturnType<typeof readListed> {
  if (Array.isArray(reply) && reply.length === 0) return undefined;
  const parts = new Parts(reply);
  const state = parts.word;
  if (!isState(state)) return undefined;
  const generation = parts.integer(0);
  const dispatched = parts.flag();
  const inherited = parts.flag();
  const leaseMs = parts.integer(0);
  const keptMs = parts.integer(0);
  const status = parts.optional();
  // A packed value is one character longer.
  const bytes = parts.integer(0) - 1;
  const valueBytes = bytes < 0 ? undefined : bytes;
  return parts.end({ state, generation, dispatched, inherited, leaseMs, keptMs, status, valueBytes }).reply;
}

function isState(word: string): word is ClaimView['state'] {
  return word === 'free' || word === 'in_progress' || word === 'completed';
}

/** Reads only the time from a reply to `inspect`. So a long value is not asked for. */
export function readTime(reply: unknown): Timed<undefined> {
  return { now: readInspectReply(reply).now, reply: undefined, omittedBytes: undefined };
}

const DECODER = /* @__PURE__ */ new TextDecoder();

/** Reads the parts of one reply from left to right. */
class Parts {
  readonly #parts: readonly unknown[];
  readonly #now: number;
  readonly word: string;
  #next = 0;
  #omittedBytes: number | undefined;

  constructor(reply: unknown) {
    if (!Array.isArray(reply)) throw unexpected();
    this.#parts = reply;
    this.#now = this.integer(Number.MIN_SAFE_INTEGER);
    this.word = this.text();
  }

  text(): string {
    return textOf(this.#parts[this.#next++]);
  }

  /** A safe integer of at least `min`. */
  integer(min: number): number {
    const text = this.text();
    const number = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!Number.isSafeInteger(number) || number < min) throw unexpected();
    return number;
  }

  flag(): boolean {
    const text = this.text();
    if (text !== '0' && text !== '1') throw unexpected();
    return text === '1';
  }

  /** A text that {@link packText} packed. */
  packed(): string {
    return unpack(this.text());
  }

  /** A packed text, or undefined if there is none. */
  optional(): string | undefined {
    const text = this.text();
    return text === '' ? undefined : unpack(text);
  }

  result(): KeptResult {
    const status = this.packed();
    const value = this.text();
    if (/^#[1-9]\d*$/.test(value)) {
      this.#omittedBytes = Number(value.slice(1));
      return { status, value: undefined };
    }
    return { status, value: value === '' ? undefined : unpack(value) };
  }

  noResult(): undefined {
    if (this.text() !== '' || this.text() !== '') throw unexpected();
  }

  /** Returns the reply, if all parts have been read. */
  end<Reply>(reply: Reply): Timed<Reply> {
    if (this.#next !== this.#parts.length) throw unexpected();
    return { now: this.#now, reply, omittedBytes: this.#omittedBytes };
  }
}

function textOf(part: unknown): string {
  if (typeof part === 'string') return part;
  if (typeof part === 'number' || typeof part === 'bigint') return String(part);
  if (part instanceof Uint8Array) return DECODER.decode(part);
  throw unexpected();
}

function unpack(text: string): string {
  if (text.startsWith('=')) return text.slice(1);
  if (text.startsWith('~')) {
    const value: unknown = parse(text.slice(1));
    if (typeof value === 'string') return value;
  }
  throw unexpected();
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** The message does not show the reply, because it can contain a client's stored response. */
function unexpected(): TypeError {
  return new TypeError('unexpected reply of Redis to a command on a claim');
}
