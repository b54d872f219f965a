import { type Counters, SLOTS_PER_WINDOW } from '../../core/window.ts';

/** What `consume.lua` says. */
export interface ConsumeReply {
  /** Milliseconds on the server's clock. */
  readonly now: number;
  /** For each check the counters of the plan's windows as they were before, or the place of that one of its records which is not ours. */
  readonly checks: readonly (Counters | number)[];
}

/**
 * Reads a reply of `consume.lua`. Clients and protocol versions differ in how they give numbers; anything but what the script says is refused.
 * @throws TypeError
 */
export function readConsumeReply(reply: unknown, checks: number, windows: number): ConsumeReply {
  if (!Array.isArray(reply) || reply.length !== 1 + checks) throw unexpected(reply);
  const read: (Counters | number)[] = [];
  for (let i = 1; i <= checks; i++) read.push(readCheck(reply[i], windows * SLOTS_PER_WINDOW));
  return { now: integer(reply[0]), checks: read };
}

/** Reads a reply of `refund.lua`: how many windows took the charge back. */
export function readRefundReply(reply: unknown): number {
  return integer(reply);
}

function readCheck(reply: unknown, doubles: number): Counters | number {
  if (!(reply instanceof Uint8Array)) return integer(reply) - 1;
  if (reply.length !== doubles * Float64Array.BYTES_PER_ELEMENT) throw unexpected(reply);
  const counters = new Float64Array(doubles);
  const view = new DataView(reply.buffer, reply.byteOffset, reply.length);
  for (let i = 0; i < doubles; i++) {
    counters[i] = view.getFloat64(i * Float64Array.BYTES_PER_ELEMENT, true);
    if (!Number.isSafeInteger(counters[i])) throw unexpected(reply);
  }
  return counters;
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
