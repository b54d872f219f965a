/** Ten thousand adjustments are worked on in slices, so that requests go on to be served. Processor time is measured. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { longestHold } from 'headgate-testbed/longest-hold';
import { afterAll, expect, it } from 'vitest';
import type { AdjustmentState } from '../../src/core/adjustment.ts';
import { createFileAdjustments, createKeptFile } from '../../src/file.ts';
import { AdjustedWindowSets } from '../../src/shared-limits/adjusted-window-sets.ts';
import { adjustmentsOf, stateOf } from '../support/many-adjustments.ts';

const folder = mkdtempSync(join(tmpdir(), 'headgate-held-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A slice takes 4 ms; the rest is for what cannot be cut: the collection of garbage, and code that is not compiled yet. */
const MOST_MS = 20;
const state: AdjustmentState = stateOf(10_000);

/** The least of several: the first one also compiles. */
async function least(call: () => unknown): Promise<number> {
  const times = [];
  for (let i = 0; i < 6; i++) times.push((await longestHold(call)).ms);
  return Math.min(...times);
}

it('ten thousand adjustments are written to a file in slices', async () => {
  const file = createKeptFile(join(folder, 'kept.json'));
  expect(await least(() => file.save(state))).toBeLessThan(MOST_MS);
});

it('ten thousand adjustments are restored to a store of one file in slices', async () => {
  const store = createFileAdjustments(join(folder, 'store.json'));
  let seen: AdjustmentState['head'] | undefined;
  const restore = async () => {
    await store.restore(seen, state);
    seen = state.head;
  };
  expect(await least(restore)).toBeLessThan(MOST_MS);
});

it('ten thousand adjustments stay over another base, in slices', async () => {
  const adjustments = adjustmentsOf(state);
  const windowSets = new AdjustedWindowSets({ allMethods: ['60/1m'] }, () => false);
  windowSets.apply(adjustments.keys(), adjustments);
  const rebase = async () => (await windowSets.prepare(adjustments, { allMethods: ['50/1m'] }))();
  expect(await least(rebase)).toBeLessThan(MOST_MS);
  expect(windowSets.windowSet({ account: 'acc_9999', route: 'r' }).windows[0]?.max).toBe(10);
});
