/** A process that obeys the adjustments, and never writes. */
import { afterEach, expect, it } from 'vitest';
import { isHeadgateError } from '../../src/base/errors.ts';
import { createMemoryAdjustments } from '../../src/memory.ts';
import { createSharedLimits, type SharedLimits } from '../../src/shared-limits/index.ts';
import type { AdjustmentStore } from '../../src/shared-limits/ports.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const opened: SharedLimits[] = [];
afterEach(() => Promise.all(opened.splice(0).map((limits) => limits.close())));
const BASE = { default: { allMethods: ['60/1m'] } };
const JANE = { by: 'jane' };
const TARGET = { account: 'acc_1' };

/** A process on what is in `stores` at the moment. What it writes would be an error. */
function startReader(stores: { readonly current: AdjustmentStore }) {
  const refused: string[] = [];
  const refuse = (what: string) => () => {
    refused.push(what);
    throw new Error('NOPERM');
  };
  const adjustments: AdjustmentStore = {
    durable: true,
    read: (known, ...noted) =>
      noted.some((each) => each !== undefined) ? refuse('note')() : stores.current.read(known),
    append: refuse('append'),
    restore: refuse('restore'),
    history: (...args) => stores.current.history(...args),
    instances: (...args) => stores.current.instances(...args),
  };
  const limits = createSharedLimits({ base: BASE, adjustments, readOnly: true, refreshMs: 10, logger: false });
  opened.push(limits);
  const max = () => limits.windowSet({ ...TARGET, route: 'r' }).windows[0]?.max;
  return { limits, max, refused };
}

function startWriter(adjustments: AdjustmentStore) {
  const limits = createSharedLimits({ base: BASE, adjustments, refreshMs: 10, logger: false, instance: 'writer' });
  opened.push(limits);
  return limits;
}

it('obeys what others change, and is not among the processes', async () => {
  const store = createMemoryAdjustments();
  const [writer, reader] = [startWriter(store), startReader({ current: store })];
  await reader.limits.ready();
  const { revision } = await writer.put(TARGET, ['50/1m'], JANE);
  await expect.poll(reader.max).toBe(50);
  expect(reader.limits.state).toMatchObject({ source: 'store', version: 1 });
  expect(await reader.limits.applied(revision)).toEqual({ instances: 1, of: 1, missing: [] });
  expect((await reader.limits.history()).length).toBe(1);
  expect(reader.refused).toEqual([]);
});

it('refuses to change anything', async () => {
  const { limits } = startReader({ current: createMemoryAdjustments() });
  for (const call of [limits.put(TARGET, ['50/1m'], JANE), limits.reset(TARGET, JANE)])
    expect(await call.catch((error: unknown) => isHeadgateError(error, 'read_only'))).toBe(true);
  expect(limits.preview([{ target: TARGET, windows: ['50/1m'] }])[0]?.after?.[0]?.max).toBe(50);
});

it('ends an adjustment at its end, and leaves the entry of it to others', async () => {
  const clock = createFakeClock(1_800_000_000_000);
  const store = createMemoryAdjustments({ clock });
  const writer = startWriter(store);
  await writer.put(TARGET, ['50/1m'], { ...JANE, forMs: 60_000 });
  await writer.close();
  const reader = startReader({ current: store });
  await reader.limits.ready();
  expect(reader.max()).toBe(50);
  clock.advance(60_000);
  await expect.poll(reader.max).toBe(60);
  expect([reader.limits.state.version, reader.limits.list(), reader.refused]).toEqual([1, [], []]);
});

it('goes on by what it knows if the store loses it, says so, and restores nothing', async () => {
  const stores = { current: createMemoryAdjustments() };
  const writer = startWriter(stores.current);
  await writer.put(TARGET, ['50/1m'], JANE);
  const reader = startReader(stores);
  await expect.poll(reader.max).toBe(50);
  const full = stores.current;
  stores.current = createMemoryAdjustments();
  await expect.poll(() => reader.limits.state.source).toBe('kept');
  expect([reader.max(), reader.refused]).toEqual([50, []]);
  stores.current = full;
  await expect.poll(() => reader.limits.state.source).toBe('store');
});
