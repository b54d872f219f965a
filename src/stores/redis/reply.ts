import { type Counters, SLOTS_PER_WINDOW } from '../../core/window.ts';

/** What `consume.lua` says. */
export interface ConsumeReply {
  /** Milliseconds on the server's clock. */
  readonly now: number;
  /** For each check the counters of the plan's windows as they were before, or the place of that one of its records which is not ours. */
  readonly checks: readonly (Counters | number)[];
}

const DOUBLE = Float64Array.BYTES_PER_ELEMENT;

/**
 * Reads a reply of `consume.lua`; anything but what the script says is refused.
 * @throws TypeError
 */
export function readConsumeReply(reply: unknown, checks: number, windows: number): ConsumeReply {
  const doubles = windows * SLOTS_PER_WINDOW;
  if (!(reply instanceof Uint8Array) || reply.length !== (1 + checks * doubles) * DOUBLE) throw unexpected(reply);
  const view = new DataView(reply.buffer, reply.byteOffset, reply.length);
  const read: (Counters | number)[] = [];
  for (let i = 0; i < checks; i++) read.push(readCheck(view, 1 + i * doubles, doubles));
  return { now: integerAt(view, 0), checks: read };
}

/** Reads a reply of `refund.lua`: how many windows took the charge back. */
export function readRefundReply(reply: unknown): number {
  return integer(reply);
}

function readCheck(view: DataView, at: number, doubles: number): Counters | number {
  if (Number.isNaN(view.getFloat64(at * DOUBLE, true))) return integerAt(view, at + 1) - 1;
  const counters = new Float64Array(doubles);
  for (let i = 0; i < doubles; i++) counters[i] = integerAt(view, at + i);
  return counters;
}

function integerAt(view: DataView, at: number): number {
  const number = view.getFloat64(at * DOUBLE, true);
  if (!Number.isSafeInteger(number)) throw unexpected(number);
  return number;
}

function integer(value: unknown): number {
  const text = value instanceof Uint8Array ? new TextDecoder().decode(value) : value;
  if (text === '' || !['string', 'number', 'bigint'].includes(typeof text)) throw unexpected(value);
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw unexpected(value);
  return number;
}

function unexpected(reply: unknown): TypeError {
  const text = JSON.stringify(reply, (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
  return new TypeError(`unexpected reply of Redis: ${text?.slice(0, 200)}`);
}
