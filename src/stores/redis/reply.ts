import type { Block } from '../../core/block.ts';
import type { CooldownReply } from '../../core/cooldown.ts';
import { type Counters, SLOTS_PER_WINDOW } from '../../core/window.ts';
import type { FoundBlock } from '../shared/check-decider.ts';

/** The output of `consume.lua`. */
export interface ConsumeReply {
  /** Milliseconds on the server's clock. */
  readonly now: number;
  /**
   * The counters of each check before its requests; or the block that rejects them; or the index of its record that
   * headgate did not write. The blocks of the account come after the records.
   */
  readonly checks: readonly (Counters | FoundBlock | number)[];
}

const BYTES_PER_DOUBLE = Float64Array.BYTES_PER_ELEMENT;
/** In place of the index of a record: the check is blocked. */
const IS_BLOCKED = -1;

/**
 * Reads the output of `consume.lua`. The reply is untrusted: anything that the script cannot return is an error.
 * @throws TypeError
 */
export function readConsumeReply(reply: unknown, checks: number, windows: number): ConsumeReply {
  const doubles = windows * SLOTS_PER_WINDOW;
  const size = (1 + checks * doubles) * BYTES_PER_DOUBLE;
  if (!(reply instanceof Uint8Array) || reply.length < size) throw unexpected(reply);
  const view = new DataView(reply.buffer, reply.byteOffset, reply.length);
  const blocks = reply.length === size ? [] : readBlocks(reply.subarray(size));
  const read: (Counters | FoundBlock | number)[] = [];
  for (let i = 0; i < checks; i++) {
    const check = readCheck(view, 1 + i * doubles, doubles);
    read.push(check === IS_BLOCKED ? readFoundBlock(blocks.shift()) : check);
  }
  if (blocks.length > 0) throw unexpected(reply);
  return { now: integerAt(view, 0), checks: read };
}

/** Reads the output of `block.lua` when it reads. */
export function readBlockReply(reply: unknown): Block | undefined {
  if (!(reply instanceof Uint8Array)) throw unexpected(reply);
  return reply.length === 0 ? undefined : readBlock(parse(reply));
}

/** Reads the output of `block.lua` when it changes a cooldown; undefined if the account has no room for the route. */
export function readCooldownReply(reply: unknown): CooldownReply | undefined {
  const text = reply instanceof Uint8Array ? new TextDecoder().decode(reply) : reply;
  if (text === 'full 0') return undefined;
  const [, state, ms] = (typeof text === 'string' && /^(started|blocked|probe|open) (\d{1,15})$/.exec(text)) || [];
  if (state === undefined) throw unexpected(reply);
  return { state: state as CooldownReply['state'], forMs: Number(ms) };
}

/**
 * Reads the output of `settle.lua`.
 * @throws TypeError
 */
export function readSettleReplies(reply: unknown, settlements: number): readonly number[] {
  const text = reply instanceof Uint8Array ? new TextDecoder().decode(reply) : reply;
  const numbers = typeof text === 'string' && /^-?\d+(,-?\d+)*$/.test(text) ? text.split(',').map(Number) : [];
  if (numbers.length !== settlements || !numbers.every(Number.isSafeInteger)) throw unexpected(reply);
  return numbers;
}

/**
 * Reads the output of `slots.lua`.
 * @throws TypeError
 */
export function readSlotReplies(reply: unknown, commands: number): readonly string[] {
  const text = reply instanceof Uint8Array ? new TextDecoder().decode(reply) : reply;
  const replies = typeof text === 'string' ? text.split(',') : [];
  if (replies.length !== commands || !replies.every((each) => /^(0|[01](:\d{1,15}){1,2}|-[12])$/.test(each)))
    throw unexpected(reply);
  return replies;
}

/** Reads an integer: the output of `block.lua` when it writes. */
export function readIntegerReply(reply: unknown): number {
  const text = reply instanceof Uint8Array ? new TextDecoder().decode(reply) : reply;
  if (text === '' || !['string', 'number', 'bigint'].includes(typeof text)) throw unexpected(reply);
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw unexpected(reply);
  return number;
}

function readBlocks(json: Uint8Array): unknown[] {
  const blocks = parse(json);
  if (!Array.isArray(blocks)) throw unexpected(blocks);
  return blocks;
}

function readFoundBlock(found: unknown): FoundBlock {
  return { block: readBlock(found), isOfAccount: (found as unknown[])[2] === true };
}

function readBlock(block: unknown): Block {
  const [forMs, reason] = Array.isArray(block) ? block : [];
  if (!Number.isSafeInteger(forMs) || forMs < 1 || (reason !== null && typeof reason !== 'string'))
    throw unexpected(block);
  return { forMs, reason: reason ?? undefined };
}

function parse(json: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(json));
  } catch {
    throw unexpected(json);
  }
}

function readCheck(view: DataView, at: number, doubles: number): Counters | number {
  if (Number.isNaN(view.getFloat64(at * BYTES_PER_DOUBLE, true))) return integerAt(view, at + 1) - 1;
  const counters = new Float64Array(doubles);
  for (let i = 0; i < doubles; i++) counters[i] = integerAt(view, at + i);
  return counters;
}

function integerAt(view: DataView, at: number): number {
  const number = view.getFloat64(at * BYTES_PER_DOUBLE, true);
  if (!Number.isSafeInteger(number)) throw unexpected(number);
  return number;
}

function unexpected(reply: unknown): TypeError {
  const text = JSON.stringify(reply, (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
  return new TypeError(`unexpected reply of Redis: ${text?.slice(0, 200)}`);
}
