import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Head } from '../../../src/core/adjustment.ts';
import { createMemoryAdjustments } from '../../../src/stores/memory/adjustments.ts';
import { adjustmentStoreSuite } from '../../../src/testing/adjustment-store-suite.ts';

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
    const store = createMemoryAdjustments();
    let head: Head | undefined;
    for (let version = 1; version <= 25_000; version++) {
      const next = { version, nonce: 'n' };
      store.append(head, { ...next, at: 0, by: 'jane', source: 'change', limits: [] });
      head = next;
    }
    expect(store.history(undefined, 30_000)).toHaveLength(14_999);
    expect(store.read({ version: 24_999, nonce: 'n' })).toMatchObject({
      kind: 'changes',
      entries: [{ version: 25_000 }],
    });
  });
});
