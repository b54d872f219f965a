/** What a process says about itself to the others, and what they make of it. */
import { describe, expect, it } from 'vitest';
import { FleetSum } from '../../src/traffic/fleet-top.ts';
import { type ProcessDetails, readDetails, writeDetails } from '../../src/traffic/process-details.ts';
import type { TopAccount, TopList } from '../../src/traffic/top-accounts.ts';

const WINDOW = { limit: 'route', max: 30, remaining: 3, durationMs: 60_000, resetMs: 41_210 } as const;
const account = (name: string, count: number, more: Partial<TopAccount> = {}): TopAccount => ({
  ...{ account: name, count, error: 0, lastMinute: 0, route: 'POST /api/v1/emails', tightest: WINDOW, ...more },
});
const list = (accounts: readonly TopAccount[], more: Partial<TopList> = {}): TopList => ({
  ...{ accounts, exact: true, unlisted: 0, sinceMs: 1_000, ...more },
});
const EMPTY = { rejected: list([]), near: list([]), accepted: list([]) };
const PROCESS: ProcessDetails = {
  ...{ version: '0.1.0', host: 'gw-1', startedAtMs: 1_800_000_000_000, state: 'serving', breaker: 'closed' },
  ...{ perSecond: 12.5, shadow: undefined, top: EMPTY },
};

describe('details of a process', () => {
  it('come back as they were said', () => {
    const accepted = list(
      [account('a', 9, { lastMinute: 3 }), account('ü "\u0000', 1, { route: 'GET /x', tightest: undefined })],
      {
        unlisted: 1,
        exact: false,
      },
    );
    const total = { both: 1, none: 2, onlyCandidate: 3, onlyCurrent: 4, dropped: 5, failed: 6 };
    const details = { ...PROCESS, shadow: { id: 'k3v9', total }, top: { ...EMPTY, accepted } };
    expect(readDetails(writeDetails(details))).toEqual(details);
    const quiet = { ...PROCESS, perSecond: undefined, top: undefined };
    expect(readDetails(writeDetails(quiet))).toEqual(quiet);
  });

  it.each([1, 10, 100, 1_024])('fit into 8 kB with names of %i bytes: the ends of the lists are left out', (length) => {
    const of = (prefix: string) =>
      list(
        Array.from({ length: 20 }, (_, i) =>
          account(`${prefix}${i}`.padEnd(length, 'x'), 1_000 - i, { route: `${i}`.padEnd(length, 'r') }),
        ),
      );
    const text = writeDetails({ ...PROCESS, top: { rejected: of('r'), near: of('n'), accepted: of('a') } });
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8_192);
    const { top } = readDetails(text) as ProcessDetails;
    const lengths = (['rejected', 'near', 'accepted'] as const).map((by) => top?.[by].accounts.length as number);
    expect(Math.min(...lengths)).toBeGreaterThan(0);
    expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThanOrEqual(1);
    // Who is left out has at most as many requests as the list says.
    for (const by of ['rejected', 'near', 'accepted'] as const)
      expect(top?.[by].unlisted).toBe(top?.[by].accounts.length === 20 ? 0 : 1_000 - (top?.[by].accounts.length ?? 0));
  });

  const said = JSON.parse(writeDetails({ ...PROCESS, top: { ...EMPTY, accepted: list([account('a', 9)]) } }));
  it.each([
    '',
    'null',
    '[]',
    '{}',
    { ...said, state: 'gone' },
    { ...said, later: 'x'.repeat(8_192) },
    { ...said, startedAt: 1e300 },
    { ...said, top: { ...said.top, routes: [] } },
    { ...said, top: { ...said.top, near: { ...said.top.near, rows: [['a', -1, 0, 0, null]] } } },
    { ...said, top: { ...said.top, near: { ...said.top.near, rows: Array(21).fill(['a', 1, 0, 0, null]) } } },
  ])('that another program wrote are not believed: %j', (wrong) => {
    expect(readDetails(typeof wrong === 'string' ? wrong : JSON.stringify(wrong))).toBeUndefined();
    expect(readDetails(JSON.stringify({ ...said, later: 1 }))).toBeDefined();
  });
});

it('a process that does not say its last minute is read as before', () => {
  const text = writeDetails({ ...PROCESS, top: { ...EMPTY, near: list([account('a', 9, { lastMinute: 3 })]) } });
  const { top } = JSON.parse(text);
  for (const each of [top.rejected, top.near, top.accepted]) delete each.lastMinute;
  const read = readDetails(JSON.stringify({ ...JSON.parse(text), top }));
  expect(read?.top?.near.accounts).toEqual([account('a', 9)]);
});

/** The first accounts of several lists. */
function mergeTops(lists: readonly TopList[], limit: number) {
  const sum = new FleetSum();
  for (const each of lists) sum.add(each);
  return sum.top(limit);
}

describe('the top of all processes', () => {
  it('adds counts, and says how many an account may have where it is not listed', () => {
    const one = list([account('a', 10), account('b', 5, { error: 1 })], { unlisted: 4, sinceMs: 500 });
    const other = list([account('b', 20, { route: 'GET /x' }), account('c', 20)], { unlisted: 7 });
    const { accounts, exact, sinceMs } = mergeTops([one, other], 2);
    expect([exact, sinceMs]).toEqual([false, 500]);
    expect(accounts).toEqual([
      { ...account('b', 25, { error: 1, route: 'GET /x' }), missing: 0 },
      { ...account('c', 20), missing: 4 },
    ]);
    expect(mergeTops([one, other], 3).accounts[2]).toMatchObject({ account: 'a', count: 10, missing: 7 });
  });

  it('puts first whoever had the most in the last minute, with what the process of then says', () => {
    const mended = account('mended', 900);
    const one = list([account('now', 3, { lastMinute: 3, route: 'GET /x' }), mended]);
    const other = list([account('later', 5, { lastMinute: 2 }), account('now', 50)]);
    expect(mergeTops([one, other], 3).accounts).toMatchObject([
      { account: 'now', count: 53, lastMinute: 3, route: 'GET /x' },
      { account: 'later', lastMinute: 2 },
      { account: 'mended', lastMinute: 0 },
    ]);
  });

  it('is exact if every list is, and none leaves anyone out', () => {
    expect(mergeTops([list([account('a', 1)]), list([])], 9)).toMatchObject({
      exact: true,
      accounts: [{ missing: 0 }],
    });
    expect(mergeTops([list([], { exact: false })], 9).exact).toBe(false);
  });

  it('of a thousand processes is found without sorting all of their accounts', () => {
    const sum = new FleetSum();
    for (let p = 0; p < 1_000; p++)
      sum.add(list(Array.from({ length: 20 }, (_, i) => account(`p${p}a${i}`, (p * 20 + i * 7) % 19_999))));
    const counts = sum.top(100).accounts.map(({ count }) => count);
    expect(counts).toEqual(counts.toSorted((a, b) => b - a));
    expect([counts.length, counts[0]]).toEqual([100, 19_998]);
  });
});
