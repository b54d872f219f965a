import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';

/** What `consume.lua` says. */
export interface ConsumeReply {
  /** Milliseconds on the server's clock. */
  readonly now: number;
  /** For each check the counters of the plan's windows as they were before, or what is wrong with its record. */
  readonly checks: readonly (Counters | Error)[];
}

/**
 * Reads a reply of `consume.lua`. Clients and protocol versions differ in how they give numbers; anything but what the script says is refused.
 * @throws TypeError
 */
export function readConsumeReply(reply: unknown, checks: number, windows: number): ConsumeReply {
  if (!Array.isArray(reply) || reply.length !== 1 + checks) throw unexpected(reply);
  const read: (Counters | Error)[] = [];
  for (let i = 1; i <= checks; i++) read.push(readCheck(reply[i], windows));
  return { now: integer(reply[0]), checks: read };
}

/** Reads a reply of `refund.lua`: how many windows took the charge back. */
export function readRefundReply(reply: unknown): number {
  return integer(reply);
}

function readCheck(reply: unknown, windows: number): Counters | Error {
  if (!Array.isArray(reply)) return faultOf(reply);
  if (reply.length !== windows * SLOTS_PER_WINDOW) throw unexpected(reply);
  const counters = new Float64Array(windows * SLOTS_PER_WINDOW);
  for (let at = 0; at < counters.length; at += SLOTS_PER_WINDOW) {
    const count = integer(reply[at + 1]);
    counters[at] = count < 0 ? NEVER : integer(reply[at]);
    counters[at + 1] = Math.max(0, count);
  }
  return counters;
}

function faultOf(reply: unknown): Error {
  const text = reply instanceof Uint8Array ? new TextDecoder().decode(reply) : reply;
  if (typeof text !== 'string' || !text.startsWith('HEADGATE ')) throw unexpected(reply);
  return new Error(text);
}

function integer(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  const text = value instanceof Uint8Array ? new TextDecoder().decode(value) : value;
  const number =
    typeof text === 'string' && text !== '' ? Number(text) : typeof text === 'bigint' ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) throw unexpected(value);
  return number;
}

function unexpected(reply: unknown): TypeError {
  const text = JSON.stringify(reply, (_, value) => (typeof value === 'bigint' ? `${value}n` : value));
  return new TypeError(`unexpected reply of Redis: ${text?.slice(0, 200)}`);
}
