import { createMemoryStore, type MemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock, type FakeClock } from '../../src/testing/fake-clock.ts';

/** A memory store with a fake clock that starts at one million. */
export function memoryStoreAt1e6(maxKeys = 1000): { readonly clock: FakeClock; readonly store: MemoryStore } {
  const clock = createFakeClock(1_000_000);
  return { clock, store: createMemoryStore({ clock, maxKeys }) };
}
