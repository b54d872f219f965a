/** The figures of several workers become those of the gateway. */
import { expect, it } from 'vitest';
import {
  allOrphans,
  allSeen,
  askOwn,
  sumOfCandidates,
  sumOfLoads,
  sumOfRates,
  sumOfSeconds,
  sumOfTops,
} from '../../src/admin/combined-figures.ts';
import { type Load, ownFigures } from '../../src/admin/figures.ts';
import { COUNTED, type Counted, type Second } from '../../src/traffic/series.ts';
import type { TopAccount, TopList } from '../../src/traffic/top-accounts.ts';
import { Traffic } from '../../src/traffic/traffic.ts';

const each = (count: number) => Object.fromEntries(COUNTED.map((name) => [name, count])) as Record<Counted, number>;
const load = (count: number, rest: Partial<Load> = {}): Load => ({
  ...{ perSecond: each(count), inFlight: count, background: count, orphansMet: count },
  ...{ breaker: 'closed' as const, health: 'ok' as const },
  ...rest,
});

it('loads are added up; the breaker and the health are the worst', () => {
  expect(sumOfLoads([load(1), load(2)])).toEqual(load(3));
  expect(sumOfLoads([load(0, { breaker: 'half-open' }), load(0), load(0, { health: 'degraded' })])).toEqual(
    load(0, { breaker: 'half-open', health: 'degraded' }),
  );
  expect(sumOfLoads([load(0, { breaker: 'open' }), load(0, { breaker: 'half-open' })]).breaker).toBe('open');
  const leases = { leased: 5, used: 2, givenBack: 1, lost: 1, held: 1, decisions: 2, pairs: 1 };
  const twice = { leased: 10, used: 4, givenBack: 2, lost: 2, held: 2, decisions: 4, pairs: 2 };
  expect(sumOfLoads([load(0, { leases }), load(0, { leases }), load(0)]).leases).toEqual(twice);
});

const account = (name: string, count: number): TopAccount => ({
  ...{ account: name, count, error: 0, lastMinute: count, route: 'GET /a', tightest: undefined },
});
const list = (accounts: TopAccount[], rest: Partial<TopList> = {}): TopList => ({
  ...{ accounts, exact: true, unlisted: 0, sinceMs: 1_000 },
  ...rest,
});

it('top accounts are added up, and one list stays as it is', () => {
  const one = list([account('a', 3), account('b', 2)], { unlisted: 1 });
  expect(sumOfTops([one], 1)).toBe(one);
  const sum = sumOfTops([list([account('a', 3), account('b', 2)]), list([account('b', 2)], { sinceMs: 500 })], 1);
  expect(sum).toMatchObject({ exact: true, sinceMs: 500, accounts: [{ account: 'b', count: 4, missing: 0 }] });
});

const second = (atMs: number, count: number, p99?: number): Second => ({ ...each(count), atMs, p50: p99, p99 });

it('seconds are added up one by one, and the slowest store counts', () => {
  expect(
    sumOfSeconds([
      [second(0, 1, 5), second(1_000, 2)],
      [second(0, 10, 9), second(1_000, 20)],
    ]),
  ).toEqual([second(0, 11, 9), second(1_000, 22)]);
});

it('an orphan that two workers met is listed once, where it was met last', () => {
  const orphan = (key: string, atMs: number) => ({ scope: 'app_1', key, atMs });
  const lists = [
    [orphan('a', 5), orphan('b', 1)],
    [orphan('c', 4), orphan('b', 3), orphan('a', 2)],
  ];
  expect(allOrphans(lists)).toEqual([orphan('a', 5), orphan('c', 4), orphan('b', 3)]);
});

it('an account that two workers saw is listed once, with its last route', () => {
  const seen = (name: string, count: number, decidedAt: number) => ({
    ...{ account: name, count, route: `GET /${decidedAt}`, decidedAt },
  });
  expect(allSeen([[seen('a', 3, 1), seen('b', 2, 9)], [seen('b', 2, 7)]])).toEqual([seen('b', 4, 9), seen('a', 3, 1)]);
  expect(sumOfRates([[{ accepted: 1, rejected: 2 }], [{ accepted: 10, rejected: 20 }]])).toEqual([
    { accepted: 11, rejected: 22 },
  ]);
});

it('only figures of the same candidate are added', () => {
  const counts = (onlyCandidate: number) => ({
    ...{ both: 0, none: 1, onlyCandidate, onlyCurrent: 0, dropped: 0, failed: 0 },
  });
  const candidate = (id: string, sinceMs: number, rejected: number, route: string) => ({
    ...{ id, sinceMs },
    figures: {
      total: counts(rejected),
      byRoute: { [route]: counts(rejected) },
      newlyRejected: [{ account: 'a', rejected, route, limit: 'route' as const }],
      unlisted: 1,
    },
  });
  const sum = sumOfCandidates('x', [
    candidate('x', 9, 1, 'GET /a'),
    undefined,
    candidate('y', 1, 100, 'GET /a'),
    candidate('x', 5, 2, 'GET /b'),
  ]);
  expect(sum).toMatchObject({ sinceMs: 5, figures: { total: { none: 2, onlyCandidate: 3 }, unlisted: 2 } });
  expect(sum?.figures.byRoute).toEqual({ 'GET /a': counts(1), 'GET /b': counts(2) });
  expect(sum?.figures.newlyRejected).toMatchObject([{ account: 'a', rejected: 3 }]);
  expect(sumOfCandidates('z', [candidate('x', 9, 1, 'GET /a')])).toBeUndefined();
});

it('accounts of a candidate beyond the bound are counted as unlisted', () => {
  const many = (prefix: string) => ({
    ...{ id: 'x', sinceMs: 0 },
    figures: {
      total: { both: 0, none: 0, onlyCandidate: 600, onlyCurrent: 0, dropped: 0, failed: 0 },
      byRoute: {},
      newlyRejected: Array.from({ length: 600 }, (_, i) => ({
        ...{ account: `${prefix}${i}`, rejected: 1, route: 'GET /a', limit: 'route' as const },
      })),
      unlisted: 0,
    },
  });
  const sum = sumOfCandidates('x', [many('a'), many('b')]);
  expect(sum?.figures.newlyRejected).toHaveLength(1_000);
  expect(sum?.figures.unlisted).toBe(200);
});

it('a gateway without workers asks itself', async () => {
  const figures = ownFigures({
    traffic: new Traffic(),
    idempotency: { held: 2, pending: 1 },
    store: { breaker: () => 'closed', health: async () => 'ok' },
    shadow: { running: undefined },
  });
  const ask = askOwn(figures);
  expect(await ask('load')).toEqual({ each: [load(0, { inFlight: 2, background: 1 })] });
  expect(await ask('rates', ['a'])).toEqual({ each: [[{ accepted: 0, rejected: 0 }]] });
  expect(await ask('decision', 'r')).toEqual({ each: [undefined] });
  expect(await ask('candidate')).toEqual({ each: [undefined] });
});
