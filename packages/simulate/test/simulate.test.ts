import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ReadTraceOptions, readTrace, simulate, type TraceRequest } from '../src/index.ts';
import { noteLines } from '../src/report-text.ts';

const START = Date.UTC(2026, 0, 1, 12);
const ROUTES = [
  { route: 'GET /chats/{id}', account: 'query.account_id' },
  { route: 'POST /emails', account: 'query.account_id' },
];

/** Second, account and route of 20 requests: 'c' is GET /chats/{id}, 'e' is POST /emails. */
const HISTORY: readonly (readonly [second: number, account: string, route: 'c' | 'e'])[] = [
  [0, 'a', 'c'],
  [1, 'a', 'c'],
  [2, 'a', 'c'],
  [3, 'a', 'c'],
  [4, 'a', 'c'],
  [5, 'b', 'c'],
  [6, 'b', 'c'],
  [7, 'b', 'e'],
  [8, 'b', 'e'],
  [9, 'a', 'e'],
  [10, 'a', 'c'],
  [11, 'a', 'c'],
  [12, 'a', 'c'],
  [13, 'a', 'c'],
  [14, 'b', 'c'],
  [15, 'b', 'c'],
  [16, 'b', 'c'],
  [17, 'b', 'e'],
  [18, 'b', 'e'],
  [19, 'b', 'e'],
];
/**
 * Windows of 10 s for each account and route. Current: 4 chats, 1 e-mail. Candidate: 2 chats, 2 e-mails.
 * a c: 0 1 2 3 pass, 4 not | 10 11 12 13 pass. Candidate: 0 1 pass, 2 3 4 not | 10 11 pass, 12 13 not.
 * b c: 5 6 14 pass (4 of 4 with 14), 15 begins a window at 15: passes, 16 passes. Candidate: 5 6 pass, 14 not, 15 16 pass.
 * b e: 7 passes, 8 not, 17 passes, 18 19 not. Candidate: 7 8 pass, 17 18 pass, 19 not. a e: 9 passes both.
 */
const MATRIX = { none: 11, both: 2, onlyCurrent: 2, onlyCandidate: 5 };
const CURRENT = { limits: { routes: { 'GET /chats/{id}': ['4/10s'], 'POST /emails': ['1/10s'] } } };
const CANDIDATE = { limits: { routes: { 'GET /chats/{id}': ['2/10s'], 'POST /emails': ['2/10s'] } } };

const name = (route: 'c' | 'e'): string => (route === 'c' ? 'GET /chats/{id}' : 'POST /emails');
const target = (account: string, route: 'c' | 'e'): string =>
  `${route === 'c' ? '/chats/7' : '/emails'}?x=1&account_id=${account}`;
const method = (route: 'c' | 'e'): string => name(route).split(' ')[0] as string;
const clf = (second: number): string => `01/Jan/2026:13:00:${String(second).padStart(2, '0')} +0100`;
const lines = (write: (second: number, account: string, route: 'c' | 'e') => string): string =>
  HISTORY.map((one) => `${write(...one)}\n`).join('');

const FORMATS: Record<string, { readonly text: string; readonly options: ReadTraceOptions }> = {
  headgate: {
    text: lines((second, account, route) =>
      JSON.stringify({
        level: 30,
        time: new Date(START + second * 1_000).toISOString(),
        req_id: `${second}`,
        route: name(route),
        account,
        cost: 1,
        at: START + second * 1_000,
        order: second,
        decision: 'accepted',
        msg: 'request',
      }),
    ),
    options: {},
  },
  combined: {
    text: lines(
      (second, account, route) =>
        `10.0.0.1 - jane doe [${clf(second)}] "${method(route)} ${target(account, route)} HTTP/1.1" 200 5 "-" "say \\"hi\\"" 0.01`,
    ),
    options: { routes: ROUTES },
  },
  common: {
    text: lines(
      (second, account, route) =>
        `::1 - - [${clf(second)}] "${method(route)} ${target(account, route)} HTTP/2.0" 200 -`,
    ),
    options: { routes: ROUTES },
  },
  json: {
    text: lines((second, account, route) =>
      JSON.stringify({ ts: START / 1_000 + second, http: { m: method(route) }, p: target(account, route) }),
    ),
    options: { format: 'json', routes: ROUTES, map: { at: 'ts', method: 'http.m', path: 'p' } },
  },
};

describe('a hand-made log of 20 requests', () => {
  const cases = Object.entries(FORMATS).flatMap(([format, { text, options }]) => [
    [format, 'text', text, options] as const,
    [format, 'gzip', [gzipSync(text)], options] as const,
    [
      format,
      'bytes in pieces of 7',
      Buffer.from(text)
        .toString('latin1')
        .match(/[\s\S]{1,7}/g)
        ?.map((part) => Buffer.from(part, 'latin1')) ?? [],
      options,
    ] as const,
  ]);

  it.each(cases)('%s, as %s, gives the hand-made matrix', async (_format, _kind, source, options) => {
    const report = await simulate({ current: CURRENT, candidate: CANDIDATE, trace: readTrace(source, options) });
    expect(report.matrix).toEqual(MATRIX);
    expect(report).toMatchObject({ requests: 20, from: START, to: START + 19_000, newlyRejected: 0.25 });
    expect(report.trace).toMatchObject({ lines: 20, requests: 20, skipped: {}, late: 0, inexact: 0 });
  });

  it('says who is newly rejected, since when and for how long, and how full windows were', async () => {
    const { text, options } = FORMATS.combined as (typeof FORMATS)[string];
    const report = await simulate({ current: CURRENT, candidate: CANDIDATE, trace: readTrace(text, options) });
    expect(report.accounts).toEqual([
      {
        name: 'a',
        both: 1,
        onlyCurrent: 0,
        onlyCandidate: 4,
        firstNewlyRejectedAt: START + 2_000,
        longestLockedOutMs: 8_000,
      },
      {
        name: 'b',
        both: 1,
        onlyCurrent: 2,
        onlyCandidate: 1,
        firstNewlyRejectedAt: START + 14_000,
        longestLockedOutMs: 1_000,
      },
    ]);
    expect(report.routes.map((group) => [group.name, group.onlyCandidate, group.onlyCurrent])).toEqual([
      ['GET /chats/{id}', 5, 0],
      ['POST /emails', 0, 2],
    ]);
    expect(report.headroom.current).toMatchObject([
      { route: 'GET /chats/{id}', window: '4/10s', requests: 13, p50: 0.5, p99: 1, max: 1, accountsOver80: 1 },
      { route: 'POST /emails', window: '1/10s', requests: 3, p50: 1, max: 1, accountsOver80: 2 },
    ]);
    expect(report.timeline.buckets).toHaveLength(20);
    expect(report.timeline.buckets.filter(({ rejectedByCandidate }) => rejectedByCandidate > 0)).toHaveLength(7);
  });
});

it('S34: limits that are a list count all routes of an account together', async () => {
  const source = FORMATS.headgate as { text: string; options: ReadTraceOptions };
  const candidate = { limits: ['5/10s'] };
  const { matrix } = await simulate({ current: candidate, candidate, trace: readTrace(source.text, source.options) });
  // a: 0 to 4 pass, 9 is rejected; 10 to 13 pass. b: 5 to 8 and 14 pass; 15 to 19 begin a window, and pass.
  expect(matrix).toEqual({ none: 19, both: 1, onlyCurrent: 0, onlyCandidate: 0 });
});

it('a candidate that is the same as the current limits changes nothing, in 10,000 random histories', async () => {
  const window = fc.record({ max: fc.integer({ min: 0, max: 6 }), durationMs: fc.integer({ min: 1, max: 400 }) });
  const limit = fc.uniqueArray(window, { maxLength: 3, selector: ({ durationMs }) => durationMs });
  const request = fc.record({
    wait: fc.integer({ min: 0, max: 90 }),
    account: fc.constantFrom('a', 'b'),
    route: fc.constantFrom('x', 'y'),
    cost: fc.integer({ min: 1, max: 3 }),
  });
  const histories = fc.array(fc.array(request, { maxLength: 30 }), { minLength: 50, maxLength: 50 });
  await fc.assert(
    fc.asyncProperty(limit, limit, histories, async (allMethods, route, many) => {
      let at = 0;
      // Each history has accounts of its own, so it is independent of the others.
      const trace = many.flatMap((history, i) =>
        history.map(({ wait, account, ...rest }): TraceRequest => {
          at += wait;
          return { at, account: `${account}${i}`, ...rest };
        }),
      );
      const isUnlimited = allMethods.length + route.length === 0;
      const limits = { allMethods, routes: { x: route }, ...(isUnlimited ? { unlimited: true as const } : {}) };
      const { matrix, requests } = await simulate({ current: { limits }, candidate: { limits }, trace });
      expect(matrix).toMatchObject({ onlyCandidate: 0, onlyCurrent: 0 });
      expect(requests).toBe(trace.length);
    }),
    { numRuns: 200 },
  );
});

it('a refund gives the place back, in both policies', async () => {
  const trace = [
    { at: 1, account: 'a', route: 'x', id: '1' },
    { at: 2, account: 'a', route: 'x' },
    { at: 3, settles: '1', cost: 0 },
    { at: 4, account: 'a', route: 'x' },
    { at: 5, settles: 'unknown', cost: 0 },
  ];
  const policy = { limits: { allMethods: ['1/1m'] } };
  const { matrix, lostSettlements } = await simulate({ current: policy, candidate: policy, trace });
  expect({ matrix, lostSettlements }).toEqual({
    matrix: { none: 2, both: 1, onlyCurrent: 0, onlyCandidate: 0 },
    lostSettlements: 1,
  });
});

it('provider and plan of an account come from the policy, else from the trace', async () => {
  const limits = {
    default: { allMethods: ['9/1m'] },
    plans: { pro: { allMethods: ['2/1m'] } },
    providers: { p: { allMethods: ['1/1m'] } },
  };
  const trace = [1, 2, 3].map((at) => ({ at, account: 'a', route: 'x', provider: 'p' }));
  const current = { limits };
  const candidate = { limits, account: () => ({ plan: 'pro' }) };
  expect((await simulate({ current, candidate, trace })).matrix).toEqual({
    none: 1,
    both: 1,
    onlyCurrent: 1,
    onlyCandidate: 0,
  });
  const unknown = { limits, account: () => ({ plan: 'gone' }) };
  expect(await simulate({ current: unknown, trace })).toMatchObject({ requests: 0, unknownPlans: 3 });
});

it('S28: the lane of a request comes from the trace, else from the route; a lane that the limits lack is only counted', async () => {
  const limits = { allMethods: ['4/1m'], lanes: { bulk: 0.5, batch: 0.25 } };
  const request = { account: 'a', route: 'x' };
  const trace = [
    { ...request, at: 1, lane: 'batch' },
    { ...request, at: 2, lane: 'batch' },
    { ...request, at: 3 },
    { ...request, at: 4 },
  ];
  const current = { limits };
  const candidate = { limits, lane: (route: string) => (route === 'x' ? 'bulk' : undefined) };
  expect((await simulate({ current, candidate, trace })).matrix).toEqual({
    none: 2,
    both: 1,
    onlyCurrent: 0,
    onlyCandidate: 1,
  });
  const report = await simulate({ current: { limits: { allMethods: ['4/1m'] } }, trace });
  expect(report).toMatchObject({ requests: 2, unknownPlans: 0, unknownLanes: 2 });
  expect(noteLines(report)).toContain(
    'Note: 2 requests have a lane that the limits do not have: they are not simulated',
  );
});

it.each([
  [{ current: { limits: { allMethods: ['x'] } }, trace: [] }, 'current.limits.allMethods[0]: a window is max/duration'],
  [{ current: CURRENT, candidate: {}, trace: [] }, 'candidate.limits: must be an object'],
  [{ current: CURRENT, trace: 5 }, 'trace: must be what readTrace() returned'],
  [{ current: CURRENT, traces: [] }, 'options.traces: unknown option'],
])('refuses %j with the place', async (options, message) => {
  await expect(simulate(options as never)).rejects.toThrow(message);
});

it('S31: the groups of a request come from the trace, else from the policy; those that the limits lack do not count', async () => {
  const limits = { default: ['9/1m'], groups: { customer: ['2/1m'] } };
  const request = { account: 'a', route: 'x' };
  const groups = { customer: 'cus_7', unknown: 'u' };
  const trace = [
    { ...request, at: 1, groups },
    { ...request, account: 'b', at: 2, groups },
    { ...request, account: 'c', at: 3, groups },
    { ...request, at: 4, groups: { customer: 'cus_8' } },
    { ...request, at: 5 },
  ];
  const policy = { limits, groups: (account: string) => (account === 'a' ? { customer: 'cus_7' } : undefined) };
  const rejected: unknown[] = [];
  const report = await simulate({
    current: policy,
    candidate: { limits: ['9/1m'] },
    trace,
    onRequest: ({ at }, { accepted, rejectedBy }) => accepted || rejected.push([at, rejectedBy]),
  });
  expect(rejected).toEqual([
    [3, 'customer'],
    [5, 'customer'],
  ]);
  expect(report.matrix).toEqual({ none: 3, both: 0, onlyCurrent: 2, onlyCandidate: 0 });
  const line = (id: unknown, at: number) =>
    JSON.stringify({ time: at, route: 'x', account: `a${at}`, groups: { customer: id } });
  const lines = [1, 2, 3].map((at) => line('cus_7', at)).concat(line(7, 4));
  const read = readTrace(lines.join('\n'), {
    format: 'json',
    map: { route: 'route', account: 'account', groups: 'groups' },
  });
  const { matrix } = await simulate({ current: { limits }, trace: read });
  expect([matrix.none, matrix.both]).toEqual([3, 1]);
});
