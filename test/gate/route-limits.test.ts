import { expect, it } from 'vitest';
import type { GateEntry } from '../../src/gate/index.ts';
import { createGate, createLimiter, isHeadgateError, type LimitRequest } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

function gateOf() {
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } });
  const asked: LimitRequest[] = [];
  const consumeSync = (request: LimitRequest) => {
    asked.push(request);
    return limiter.consumeSync(request);
  };
  const gate = createGate<string>({
    limiter: { ...limiter, synchronous: true, consumeSync, consume: limiter.consume.bind(limiter) },
    account: () => 'a',
    route: (request) => request,
    logger: false,
  });
  return { gate, limiter, asked };
}

const statusOf = (entry: GateEntry) => (entry.kind === 'answer' ? entry.reply.status : 'passed');

it('limits of a route reject in front of All methods; a route without them has only All methods', async () => {
  const { gate } = gateOf();
  const route = gate.with({ route: 'POST /emails', limits: ['2/1m'] });
  const statuses = [];
  for (let i = 0; i < 3; i++) statuses.push(statusOf(await route.enter('x')));
  expect(statuses).toEqual(['passed', 'passed', 429]);
  const rejected = await route.enter('x');
  expect(rejected).toMatchObject({ reply: { headers: { 'x-ratelimit-limit': '2', 'retry-after': '60' } } });
  for (let i = 0; i < 3; i++) expect(statusOf(await gate.enter('GET /chats'))).toBe('passed');
});

it('limits of several routes: each has its own count, and a gate made of one of them inherits them', async () => {
  const { gate } = gateOf();
  const routes = gate.with({ limits: ['1/1m'] });
  expect(statusOf(await routes.enter('GET /a'))).toBe('passed');
  expect(statusOf(await routes.enter('GET /b'))).toBe('passed');
  expect(statusOf(await routes.with({ cost: 1 }).enter('GET /a'))).toBe(429);
  expect(statusOf(await routes.with({ limits: ['2/1m'] }).enter('GET /b'))).toBe('passed');
});

it('limits of a route are checked once: each request passes the same ones to the limiter', async () => {
  const { gate, asked } = gateOf();
  const given = ['2/1m'];
  const route = gate.with({ limits: given });
  given[0] = 'changed later';
  await route.enter('GET /a');
  await route.enter('GET /b');
  expect(asked.map(({ limits }) => limits)).toEqual([
    [{ max: 2, durationMs: 60_000 }],
    [{ max: 2, durationMs: 60_000 }],
  ]);
  expect(asked[0]?.limits).toBe(asked[1]?.limits);
});

it('a cost that is no cost is refused when the route is mounted', () => {
  const { gate } = gateOf();
  for (const cost of [0, -1, 1.5, Number.NaN]) expect(() => gate.with({ cost })).toThrow(/cost/i);
});

it.each([
  [['5'], /^route options\.limits\[0\]: a window is max\/duration/],
  ['5/1m', /^route options\.limits: a limit is an array of windows/],
  [[], /^route options\.limits: must have a window/],
])('limits %j of a route throw when it is mounted', (limits, message) => {
  const { gate } = gateOf();
  expect(() => gate.with({ limits: limits as never })).toThrow(message);
  expect(() => gate.with({ limits: limits as never })).toThrow(
    expect.toSatisfy((error) => isHeadgateError(error, 'invalid_limit')),
  );
});

it('createGate has no limits: they belong to the limiter, or to a route', () => {
  const { limiter } = gateOf();
  const options = { limiter, account: () => 'a', route: () => 'r', limits: ['5/1m'] };
  expect(() => createGate(options)).toThrow(/^options\.limits: unknown option/);
});
