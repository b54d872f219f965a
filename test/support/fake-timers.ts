import type { Timers } from '../../src/core/timers.ts';

interface Call {
  readonly at: number;
  readonly order: number;
  readonly call: () => void;
}

/** A clock and timers that move only when a test moves them. */
export interface FakeTimers extends Timers {
  /** Number of timers that have not fired, and were not cancelled. */
  readonly waiting: number;
  /** Moves by `ms`, and fires every timer that becomes due, each to its end. */
  advance(ms: number): Promise<void>;
  /** Moves to the next timer and fires it. Resolves to false if there is none. */
  step(): Promise<boolean>;
}

export function createFakeTimers(start = 1_000_000): FakeTimers {
  const calls = new Set<Call>();
  let now = start;
  let orders = 0;
  const next = (until: number): Call | undefined =>
    [...calls].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at || a.order - b.order)[0];
  const fire = async (call: Call): Promise<void> => {
    now = Math.max(now, call.at);
    calls.delete(call);
    call.call();
    await turn();
  };
  return {
    now: () => now,
    get waiting() {
      return calls.size;
    },
    after(ms, call) {
      const entry = { at: now + ms, order: orders++, call };
      calls.add(entry);
      return () => calls.delete(entry);
    },
    async advance(ms) {
      const until = now + ms;
      await settled();
      for (let due = next(until); due !== undefined; due = next(until)) await fire(due);
      now = until;
      await settled();
    },
    async step() {
      await settled();
      const due = next(Number.POSITIVE_INFINITY);
      if (due !== undefined) await fire(due);
      return due !== undefined;
    },
  };
}

/** Waits until every promise that can settle now has settled. */
export async function settled(): Promise<void> {
  await turn();
  await turn();
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
