import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Head, MAX_RECENT } from '../../src/core/adjustment.ts';
import { createMemoryAdjustments, MemoryAdjustments } from '../../src/shared-limits/stores/memory.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { adjustmentStoreSuite } from '../support/adjustment-suite/suite.ts';

adjustmentStoreSuite({ describe, it }, fc, { name: 'memory', create: (clock) => createMemoryAdjustments({ clock }) });

describe('createMemoryAdjustments()', () => {
  it('says that its adjustments do not outlive the process', () => {
    expect(createMemoryAdjustments().durable).toBe(false);
  });

  it('rejects an unknown option and a clock without now()', () => {
    expect(() => createMemoryAdjustments({ clocks: 1 } as object)).toThrow(/options\.clocks: unknown option/);
    expect(() => createMemoryAdjustments({ clock: {} } as object)).toThrow(
      /clock: must be an object with a method now/,
    );
  });

  it('forgets the oldest entries of the history, beyond 10,000', () => {
    const store = new MemoryAdjustments(createFakeClock());
    let head: Head | undefined;
    for (let version = 1; version <= 25_000; version++) {
      const next = { version, nonce: 'n' };
      store.append(head, { ...next, at: 0, by: 'jane', source: 'change', limits: [] });
      head = next;
    }
    expect(store.history(undefined, 30_000)).toHaveLength(14_999);
    const read = (behind: number) => store.read({ version: 25_000 - behind, nonce: 'n' }).kind;
    expect([MAX_RECENT, MAX_RECENT + 1].map(read)).toEqual(['changes', 'all']);
    expect(store.read({ version: 24_999, nonce: 'n' })).toMatchObject({
      kind: 'changes',
      entries: [{ version: 25_000 }],
    });
  });

  it('lists a process for 10 seconds after it was heard of', () => {
    const clock = createFakeClock();
    const store = createMemoryAdjustments({ clock });
    store.read(undefined, 'gateway 1');
    clock.advance(10_000);
    expect(store.instances()).toEqual([{ name: 'gateway 1', head: undefined, ageMs: 10_000 }]);
    clock.advance(1);
    expect(store.instances()).toEqual([]);
  });

  it('returns everything to a process if it has no entries itself', () => {
    const store = createMemoryAdjustments();
    const state = { head: { version: 5, nonce: 'n' }, adjustments: [], recent: [] };
    store.restore(undefined, state);
    expect(store.read({ version: 4, nonce: 'n' })).toMatchObject({ kind: 'all', state });
  });

  it('has no history after it was replaced by nothing', () => {
    const store = new MemoryAdjustments(createFakeClock());
    store.append(undefined, { version: 1, nonce: 'n', at: 0, by: 'jane', source: 'change', limits: [] });
    store.replace(undefined);
    expect([store.state, store.history(undefined, 9), store.read(undefined).kind]).toEqual([undefined, [], 'none']);
  });
});
