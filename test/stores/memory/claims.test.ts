import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, it } from 'vitest';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { claimStoreSuite } from '../../../src/testing/claim-store-suite.ts';

const HISTORIES = Number(process.env.HEADGATE_HISTORIES ?? randomRuns(1_000));

claimStoreSuite({ describe, it }, fc, {
  name: 'memory',
  histories: HISTORIES,
  create: (clock) => createMemoryClaimStore({ clock, maxKeys: 1_000 }),
});
