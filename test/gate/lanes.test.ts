import { expect, it } from 'vitest';
import type { GateEntry, GateEvent } from '../../src/gate/index.ts';
import { createGate, createLimiter, type GateOptions, type Limits } from '../../src/index.ts';
import type { WindowSetSource } from '../../src/limits/index.ts';
import { createMemoryAdjustments } from '../../src/memory.ts';
import { createSharedLimits } from '../../src/shared-limits/index.ts';

interface Request {
  readonly lane?: string | undefined;
}

function gateOf(options: Partial<GateOptions<Request>> = {}) {
  const limiter = createLimiter({ limits: { default: ['10/1m'], lanes: { bulk: 0.5, batch: 0.2 } } });
  const events: GateEvent[] = [];
  const gate = createGate<Request>({
    limiter,
    account: () => 'a',
    lane: ({ lane }) => lane,
    onEvent: (event) => events.push(event),
    logger: false,
    ...options,
  });
  return { gate, events };
}

const limitOf = (entry: GateEntry) =>
  entry.kind === 'proceed' ? entry.headers['x-ratelimit-limit'] : entry.reply.status;

it.each<[string, GateOptions<Request>['lane']]>([
  ['synchronous', ({ lane }) => lane],
  ['asynchronous', async ({ lane }) => lane],
])('S28: lane selects a share of each max: a resolver that is %s', async (_kind, lane) => {
  const { gate, events } = gateOf({ lane });
  expect(limitOf(await gate.enter({}))).toBe('10');
  expect(limitOf(await gate.enter({ lane: 'bulk' }))).toBe('5');
  expect(events).toMatchObject([
    { type: 'decision', decision: { lane: undefined } },
    { type: 'decision', decision: { lane: 'bulk' } },
  ]);
});

it('S28: a route can have a lane of its own, as a name or a resolver', async () => {
  const { gate } = gateOf();
  expect(limitOf(await gate.with({ lane: 'batch' }).enter({}))).toBe('2');
  expect(limitOf(await gate.with({ lane: () => 'bulk' }).enter({ lane: 'batch' }))).toBe('5');
  expect(limitOf(await gate.with({ lane: () => undefined }).enter({ lane: 'batch' }))).toBe('10');
});

it('S28: an unknown lane is a 500, which charges nothing and is an event', async () => {
  const { gate, events } = gateOf();
  expect(limitOf(await gate.enter({ lane: 'bulky' }))).toBe(500);
  expect(events).toMatchObject([{ type: 'failure', stage: 'limits', error: { code: 'unknown_lane' } }]);
  const failing = gateOf({
    lane: () => {
      throw new Error('no tenant');
    },
  });
  expect(limitOf(await failing.gate.enter({}))).toBe(500);
  expect(failing.events).toMatchObject([{ type: 'failure', stage: 'lane' }]);
  expect(limitOf(await gate.enter({}))).toBe('10');
});

it('lane must be a function of the request, or of a route a name', () => {
  expect(() => gateOf({ lane: 'bulk' as never })).toThrow('lane: must be a function');
  expect(() => gateOf().gate.with({ lane: 5 as never })).toThrow('lane: must be a function');
});

it('S28: a gate with `lane` needs limits with lanes, if the limits can be known', () => {
  const lane = () => 'bulk';
  const create = (limits: Limits | WindowSetSource) =>
    createGate({ limiter: createLimiter({ limits }), account: () => 'a', lane });
  expect(() => create(['10/1m'])).toThrow('lane: the limits of the limiter have no lanes: add limits.lanes');
  const base = () => ['10/1m'];
  expect(() => create(base)).not.toThrow();
  const shared = createSharedLimits({ base, adjustments: createMemoryAdjustments() });
  expect(() => create(shared)).not.toThrow();
});
