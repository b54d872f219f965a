import { type Counters, SLOTS_PER_WINDOW } from '../../core/window.ts';

/** The output of `consume.lua`. */
export interface ConsumeReply {
  /** Milliseconds on the server's clock. */
  readonly now: number;
  /** The counters of each check before its requests; or the index of its key that headgate did not write. */
  readonly checks: readonly (Counters | number)[];
}

const BYTES_PER_DOUBLE = Float64Array.BYTES_PER_ELEMENT;

/**
 * Reads the output of `consume.lua`. The reply is untrusted: anything that the script cannot return is an error.
 * @throws TypeError
 */
export function readConsumeReply(reply: unknown, checks: number, windows: number): ConsumeReply {
  const doubles = windows * SLOTS_PER_WINDOW;
  const size = (1 + checks * doubles) * BYTES_PER_DOUBLE;
  if (!(reply instanceof Uint8Array) || reply.length !== size) throw unexpected(reply);
  const view = new DataView(reply.buffer, reply.byteOffset, reply.length);
  const read: (Counters | number)[] = [];
  for (let i = 0; i < checks; i++) read.push(readCheck(view, 1 + i * doubles, doubles));
  return { now: integerAt(view, 0), checks: read };
}

/** Reads the output of `settle.lua`: the number of windows that were settled. */
export function readSettleReply(reply: unknown): number {
  const text = reply instanceof Uint8Array ? new TextDecoder().decode(reply) : reply;
  if (text === '' || !['string', 'number', 'bigint'].includes(typeof text)) throw unexpected(reply);
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw unexpected(reply);
  return number;
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
