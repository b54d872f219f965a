import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';

/** What `consume.lua` says: the time, and the counters of the plan's windows as they were before. */
export interface ConsumeReply {
  /** Milliseconds on the server's clock. */
  readonly now: number;
  readonly counters: Counters;
}

/**
 * Reads a reply of `consume.lua`. Clients and protocol versions differ in how they give numbers; anything but what the script says is refused.
 * @throws TypeError
 */
export function readConsumeReply(reply: unknown, windows: number): ConsumeReply {
  if (!Array.isArray(reply) || reply.length !== 1 + windows * SLOTS_PER_WINDOW) throw unexpected(reply);
  const counters = new Float64Array(windows * SLOTS_PER_WINDOW);
  for (let i = 0; i < windows; i++) {
    const startedAt = text(reply[1 + i * SLOTS_PER_WINDOW]);
    counters[i * SLOTS_PER_WINDOW] = startedAt === '' ? NEVER : integer(startedAt);
    counters[i * SLOTS_PER_WINDOW + 1] = integer(text(reply[2 + i * SLOTS_PER_WINDOW]));
  }
  return { now: integer(text(reply[0])), counters };
}

/** Reads a reply of `refund.lua`: how many windows took the charge back. */
export function readRefundReply(reply: unknown): number {
  return integer(text(reply));
}

function text(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') return String(value);
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  throw unexpected(value);
}

function integer(value: string): number {
  const number = value === '' ? Number.NaN : Number(value);
  if (!Number.isSafeInteger(number)) throw unexpected(value);
  return number;
}

function unexpected(reply: unknown): TypeError {
  return new TypeError(`unexpected reply of Redis: ${JSON.stringify(reply)?.slice(0, 200)}`);
}
