import { expect, it } from 'vitest';
import type { Adjustment } from '../../../src/core/adjustment.ts';
import { listLimits } from '../../../src/gateway/admin/limit-list.ts';

const adjustmentOf = (target: Adjustment['target']): Adjustment => ({
  ...{ target, windows: [], version: 1, at: 1, by: 'jane', reason: undefined, until: undefined },
});
const LIMITS = {
  default: { allMethods: ['60/1m'], routes: { 'GET /x': ['5/1m'] } },
  providers: { mock: { allMethods: ['20/1m'] } },
  accounts: { mock: { routes: { 'GET /x': ['1/1m'] } }, ada: { allMethods: ['1/1m'] } },
};
const ADJUSTED = [{ provider: 'mock' }, { plan: 'pro' }].map(adjustmentOf);

it.each([
  [{}, 6],
  [{ adjusted: true }, 2],
  [{ layer: 'default' as const }, 2],
  [{ name: 'mock' }, 2],
  [{ name: '' }, 0],
  [{ layer: 'provider' as const, name: 'mock', adjusted: true }, 1],
])('of the limits, %j are %i', async (filter, count) => {
  expect(await listLimits(LIMITS, ADJUSTED, filter)).toHaveLength(count);
});

it('lists very many in slices, so that others run meanwhile', async () => {
  const accounts = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, i) => [`a${(i * 7_919) % 20_011}`, { allMethods: ['5/1m'] }]),
  );
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  count();
  const listed = await listLimits({ default: {}, accounts }, []);
  isDone = true;
  expect(listed.map(({ target }) => target.account)).toEqual(Object.keys(accounts).sort());
  expect(turns).toBeGreaterThan(10);
});
