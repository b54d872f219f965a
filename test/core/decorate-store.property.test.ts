import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Wrappers } from '../../src/base/decorate.ts';
import { decorateStore } from '../../src/core/decorate-store.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { limitStoreSuite } from '../../src/testing/limit-store-suite.ts';

const REQUIRED = ['consume', 'peek', 'settle', 'reset'] as const;
const OPTIONAL = ['settleOnce', 'lease', 'charge', 'block', 'unblock', 'blocked', 'ready', 'close'] as const;
const METHODS = [...REQUIRED, ...OPTIONAL];
type Method = (typeof METHODS)[number];

/** A wrapper that only passes every method on. */
const passing: Wrappers<LimitStore> = Object.fromEntries(
  METHODS.map((name) => [
    name,
    (call: (...args: unknown[]) => unknown) =>
      (...args: unknown[]) =>
        call(...args),
  ]),
);

limitStoreSuite({ describe, it }, fc, {
  name: 'a memory store, decorated twice',
  create: (clock) => decorateStore(decorateStore(createMemoryStore({ clock }), {}), passing),
  histories: 200,
});

describe('decorateStore', () => {
  it('has exactly the methods of the store, and passes arguments and results on, in any store', () => {
    fc.assert(
      fc.property(
        fc.subarray([...OPTIONAL]),
        fc.subarray<Method>([...METHODS]),
        fc.boolean(),
        fc.option(fc.constant({}), { nil: undefined }),
        (optional, wrapped, synchronous, identity) => {
          const present: Method[] = [...REQUIRED, ...optional];
          const store = {
            synchronous,
            ...(identity && { identity }),
            ...Object.fromEntries(present.map((name) => [name, vi.fn((...args) => [name, args])])),
          } as unknown as LimitStore;
          const seen: Method[] = [];
          const wrappers = Object.fromEntries(
            wrapped.map((name) => [
              name,
              (call: (...args: unknown[]) => unknown) =>
                (...args: unknown[]) => {
                  seen.push(name);
                  return call(...args);
                },
            ]),
          );
          const decorated = decorateStore(store, wrappers) as unknown as Record<
            string,
            (...args: unknown[]) => unknown
          >;
          expect(Object.keys(decorated).sort()).toEqual(['identity', 'synchronous', ...present].sort());
          expect([decorated.synchronous, decorated.identity]).toEqual([synchronous, identity ?? store]);
          for (const name of present) expect(decorated[name]?.(1, name)).toEqual([name, [1, name]]);
          expect(seen).toEqual(present.filter((name) => wrapped.includes(name)));
        },
      ),
    );
  });
});
