import { describe, expect, it } from 'vitest';
import type { ClaimStore } from '../../src/core/ports.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createFakeClock, type FakeClock } from '../../src/testing/fake-clock.ts';
import { createWrongClaimStore, FAULTS } from '../testing/wrong-claim-stores.ts';
import { replayTrace } from './replay.ts';
import { findSpin, simulateTrace } from './spin.ts';
import { modelDigest, RECIPES, readTraceFile } from './trace-file.ts';

const { model, sets } = readTraceFile();

async function replayAll(create: (clock: FakeClock) => ClaimStore): Promise<number> {
  let steps = 0;
  for (const set of sets) {
    for (const trace of set.traces) {
      const clock = createFakeClock(1_000_000_000_000);
      await replayTrace(create(clock), clock, trace, set);
      steps += trace.length;
    }
  }
  return steps;
}

describe('the traces of docs/claim.pml', () => {
  it('are of the model as it is: else npm run model -- --write makes them anew', () => {
    expect(model).toBe(modelDigest());
    expect(sets.map(({ traces, ...recipe }) => recipe)).toEqual(RECIPES);
  });

  it('are what SPIN simulates', () => {
    const spin = findSpin();
    for (const { options, from, traces } of sets) {
      if (from === 'search') continue;
      expect(simulateTrace(spin, options, from[0] as number)).toEqual(traces[0]);
    }
  });

  it('are what the memory store does, step by step', async () => {
    expect(await replayAll((clock) => createMemoryClaimStore({ clock, maxKeys: 10 }))).toBeGreaterThan(5_000);
  });

  it.each(Object.keys(FAULTS))('detect %s', async (fault) => {
    await expect(replayAll((clock) => createWrongClaimStore(clock, FAULTS[fault]))).rejects.toThrow(/of the trace: /);
  });
});
