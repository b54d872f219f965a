import fc from 'fast-check';
import { describe, it } from 'vitest';
import { createMemoryClaimStore, createMemoryStore } from '../../../src/stores/memory/index.ts';
import { claimStoreSuite, limitStoreSuite } from '../../../src/testing/index.ts';

/** Of each: the rule does not depend on the runtime, which only has to carry it out. */
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
