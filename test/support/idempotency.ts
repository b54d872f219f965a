import type { IdempotencyEvent } from '../../src/idempotency/index.ts';
import { createIdempotency, type Idempotency, type IdempotencyOptions } from '../../src/index.ts';
import { createMemoryClaimStore, type MemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createFakeTimers, type FakeTimers } from './fake-timers.ts';
import { createFaultyClaims, type FaultyClaims } from './faulty-claims.ts';

/** One gateway process; all of them share one store. */
export interface Gateway {
  readonly idempotency: Idempotency;
  readonly line: FaultyClaims;
  readonly events: IdempotencyEvent[];
}

/** Several gateways with one store and one clock. */
export interface World {
  readonly timers: FakeTimers;
  readonly store: MemoryClaimStore;
  gateway(options?: Partial<IdempotencyOptions>): Gateway;
}

export const ID = { scope: 'app_1', key: 'key-1' };

export function createWorld(maxBytes = 64 * 1_048_576): World {
  const timers = createFakeTimers();
  const store = createMemoryClaimStore({ clock: timers, maxBytes });
  return {
    timers,
    store,
    gateway(options = {}) {
      const line = createFaultyClaims(store);
      const events: IdempotencyEvent[] = [];
      const idempotency = createIdempotency({
        store: line,
        timers,
        onEvent: (event) => events.push(event),
        ...options,
      });
      return { idempotency, line, events };
    },
  };
}

/** An operation that ends when the test calls `end` or `fail`. */
export function createOperation<T>(): {
  readonly run: () => Promise<T>;
  readonly runs: number;
  readonly end: (value: T) => void;
  readonly fail: (error: unknown) => void;
} {
  const started: { resolve: (value: T) => void; reject: (error: unknown) => void }[] = [];
  let runs = 0;
  return {
    run: () => {
      runs++;
      return new Promise((resolve, reject) => started.push({ resolve, reject }));
    },
    get runs() {
      return runs;
    },
    end: (value) => started.shift()?.resolve(value),
    fail: (error) => started.shift()?.reject(error),
  };
}
