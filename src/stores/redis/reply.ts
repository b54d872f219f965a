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
  const size = windows * SLOTS_PER_WINDOW;
  if (!Array.isArray(reply) || reply.length !== 1 + checks * size) throw unexpected(reply);
  const read: (Counters | Error)[] = [];
  const now = integer(reply[0]);
  for (let at = 1; at < reply.length; at += size) read.push(readCheck(reply, at, size, now));
  return { now, checks: read };
}

/** Reads a reply of `refund.lua`: how many windows took the charge back. */
export function readRefundReply(reply: unknown): number {
  return integer(reply);
}

function readCheck(reply: readonly unknown[], from: number, size: number, now: number): Counters | Error {
  const counters = new Float64Array(size);
  for (let at = 0; at < size; at += SLOTS_PER_WINDOW) {
    const ago = reply[from + at];
    const fault = typeof ago === 'number' ? undefined : faultOf(ago);
    if (fault !== undefined) return fault;
    const count = integer(reply[from + at + 1]);
    counters[at] = count < 0 ? NEVER : now - integer(ago);
    counters[at + 1] = Math.max(0, count);
  }
  return counters;
}

function faultOf(value: unknown): Error | undefined {
  const text = value instanceof Uint8Array ? new TextDecoder().decode(value) : value;
  return typeof text === 'string' && text.startsWith('HEADGATE ') ? new Error(text) : undefined;
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
