import fc from 'fast-check';
import { describe, it } from 'vitest';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { limitStoreSuite } from '../../../src/testing/limit-store-suite.ts';
import { histories } from '../../support/redis-conformance.ts';

limitStoreSuite({ describe, it }, fc, {
  name: 'memory',
  histories: histories(500),
  create: (clock) => createMemoryStore({ clock }),
});
