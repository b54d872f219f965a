import fc from 'fast-check';
import { describe, it } from 'vitest';
import { createMemoryClaimStore, createMemoryStore } from '../../../src/memory.ts';
import { claimStoreSuite, limitStoreSuite } from '../../../src/testing/index.ts';

/** Histories per store; few, because the rules are tested elsewhere, and here only the runtime is. */
const HISTORIES = 200;

limitStoreSuite({ describe, it }, fc, {
  name: 'memory',
  histories: HISTORIES,
  create: (clock) => createMemoryStore({ clock }),
});

claimStoreSuite({ describe, it }, fc, {
  name: 'memory',
  histories: HISTORIES,
  create: (clock) => createMemoryClaimStore({ clock, maxKeys: 1_000 }),
});
