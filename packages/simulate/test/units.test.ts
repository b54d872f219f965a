/** S33: traces with costs in several units. */
import { describe, expect, it } from 'vitest';
import { type ReadTraceOptions, readTrace, recommend, simulate, type TraceEvent } from '../src/index.ts';

const START = Date.UTC(2026, 0, 1, 12);
const lines = (each: readonly object[]) => each.map((line) => JSON.stringify(line)).join('\n');
const read = async (text: string, options: Partial<ReadTraceOptions> = {}): Promise<TraceEvent[]> => {
  const events: TraceEvent[] = [];
  for await (const batch of readTrace([text], { routes: [], ...options })) events.push(...batch);
  return events;
};
const LIMITS = { allMethods: ['100/1h', '1000 tokens/1h'] };

it('reads the cost of each unit from a column, and compares limits of other units', async () => {
  const rows = [400, 400, undefined, 'many', -1, 400].map((total, i) => ({
    time: START + i * 1_000,
    account: 'a',
    route: 'POST /chat',
    usage: { total },
  }));
  const map = { account: 'account', route: 'route', 'cost.tokens': 'usage.total' } as const;
  const options = { format: 'json', map } as const;
  expect((await read(lines(rows), options)).map((event) => event.cost)).toEqual([
    { requests: 1, tokens: 400 },
    { requests: 1, tokens: 400 },
    { requests: 1 },
    { requests: 1 },
    { requests: 1 },
    { requests: 1, tokens: 400 },
  ]);
  const report = await simulate({
    current: { limits: LIMITS },
    candidate: { limits: { allMethods: ['5/1h'] } },
    trace: readTrace([lines(rows)], { routes: [], ...options }),
  });
  // The current limits reject the third 400 tokens, the candidate the sixth request.
  expect(report.matrix).toEqual({ none: 5, both: 1, onlyCurrent: 0, onlyCandidate: 0 });
  expect(report.headroom.current.map(({ window, requests }) => [window, requests])).toEqual(
    expect.arrayContaining([
      ['100/1h', 5],
      ['1000 tokens/1h', 2],
    ]),
  );
});

describe('the log of the gateway', () => {
  const line = (rest: object) => ({ level: 'info', time: new Date(START).toISOString(), ...rest });
  const request = (id: string, order: number, cost: unknown) =>
    line({
      ...{ msg: 'request', req_id: id, route: 'POST /chat', account: 'a', decision: 'accepted' },
      ...{ cost, at: START, order },
    });

  it('has costs and final costs per unit', async () => {
    const events = await read(
      lines([
        request('r1', 1, { requests: 1, tokens: 900 }),
        line({ msg: 'refund', req_id: 'r1', cost: { tokens: 100 }, at: START, order: 2 }),
        request('r2', 3, { requests: 1, tokens: 900 }),
        request('r3', 4, { requests: 1, tokens: 900 }),
        request('r4', 5, { tokens: 'x' }),
      ]),
    );
    expect(events.map((event) => event.cost)).toEqual([
      { requests: 1, tokens: 900 },
      { tokens: 100 },
      { requests: 1, tokens: 900 },
      { requests: 1, tokens: 900 },
      undefined,
    ]);
    const report = await simulate({ current: { limits: LIMITS }, trace: events });
    expect(report).toMatchObject({ requests: 4, logged: { agree: 3, differ: 1 }, lostSettlements: 0 });
  });
});

it('a recommendation counts requests', async () => {
  const trace = Array.from({ length: 4 }, (_, i) => ({
    ...{ at: START + i, account: 'a', route: 'POST /chat' },
    cost: { requests: 2, tokens: 9_000 },
  }));
  const { routes } = await recommend({ trace, windows: ['1h'], keep: 1 });
  expect(routes).toMatchObject([{ route: 'POST /chat', requests: 4, windows: [{ max: 10 }] }]);
});
