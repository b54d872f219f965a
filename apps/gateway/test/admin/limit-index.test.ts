import type { Adjustment } from 'headgate/stores';
import { startThreadTimer } from 'headgate-testbed/cpu-timer';
import { longestHold } from 'headgate-testbed/longest-hold';
import { describe, expect, it } from 'vitest';
import { listLimits } from '../../src/admin/limit-index.ts';

const adjustmentOf = (target: Adjustment['target']): Adjustment => ({
  ...{ target, windows: [], version: 1, at: 1, by: 'jane', reason: undefined, until: undefined },
});
const LIMITS = {
  default: { allMethods: ['60/1m'], routes: { 'GET /x': ['5/1m'] } },
  providers: { mock: { allMethods: ['20/1m'] } },
  accounts: { mock: { routes: { 'GET /x': ['1/1m'] } }, ada: { allMethods: ['1/1m'] } },
};
/** A slice takes 4 ms; the rest is for the collection of garbage, and for code that is not compiled yet. */
const MOST_MS = 20;
const NONE: readonly Adjustment[] = [];
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

it('an adjustment takes the place of the limit of the config, whatever the filter', async () => {
  for (const filter of [{}, { layer: 'provider' as const }, { name: 'mock' }]) {
    const listed = await listLimits(LIMITS, ADJUSTED, filter);
    expect(listed.filter(({ target }) => target.provider === 'mock')).toEqual([
      { key: '["provider","mock"]', target: { provider: 'mock' }, adjustment: ADJUSTED[0] },
    ]);
    expect(listed.map(({ key }) => key)).toEqual(listed.map(({ key }) => key).sort());
  }
});

it('a name is not taken for the beginning of another one', async () => {
  const accounts = Object.fromEntries(['a', 'ab', 'a"', 'a,', '"'].map((id) => [id, { allMethods: ['1/1m'] }]));
  for (const name of Object.keys(accounts))
    expect(await listLimits({ default: {}, accounts }, [], { name })).toMatchObject([{ target: { account: name } }]);
});

describe('of 20,000 limits', () => {
  const ids = Array.from({ length: 20_000 }, (_, i) => `a${(i * 7_919) % 20_011}`);
  const limits = { default: {}, accounts: Object.fromEntries(ids.map((id) => [id, { allMethods: ['5/1m'] }])) };

  it('the first page sorts all of them, in slices; the next ones cost next to nothing', async () => {
    const first = await cost(() => listLimits(limits, NONE));
    expect(first.result.map(({ target }) => target.account)).toEqual(ids.toSorted());
    const again = await cost(() => listLimits(limits, NONE));
    expect(again.result).toBe(first.result);
    const named = await cost(() => listLimits(limits, NONE, { name: 'a17' }));
    expect(named.result).toMatchObject([{ target: { account: 'a17' } }]);
    const changes = ['a17', 'a18', 'a19'].map((account) => [adjustmentOf({ account })]);
    const costs = [];
    for (const adjustments of changes) costs.push(await cost(() => listLimits(limits, adjustments)));
    const [changed] = costs.toSorted((one, other) => one.ms - other.ms) as [(typeof costs)[number]];
    expect(changed.result).toHaveLength(20_000);
    expect(again.totalMs + named.totalMs).toBeLessThan(first.totalMs / 10);
    expect(changed.totalMs).toBeLessThan(first.totalMs / 2);
    // What cannot be cut is to list the names of an object, once per config.
    expect(changed.ms).toBeLessThan(MOST_MS);
  });
});

async function cost<Result>(call: () => Promise<Result>) {
  const elapsed = startThreadTimer();
  const { result, ms } = await longestHold(call);
  return { result, ms, totalMs: elapsed() };
}
