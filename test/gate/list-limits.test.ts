/** S34: a gate over limits that are a list needs no route. */
import { expect, it } from 'vitest';
import type { Decision } from '../../src/core/decision.ts';
import type { GateEntry } from '../../src/gate/index.ts';
import { createGate, createLimiter, type LimiterOptions } from '../../src/index.ts';

const statusOf = (entry: GateEntry) => (entry.kind === 'answer' ? entry.reply.status : 'passed');
const gateOf = (limits: LimiterOptions['limits']) =>
  createGate<string>({
    limiter: createLimiter({ limits }),
    account: (request) => (request === 'nobody' ? undefined : request),
    logger: false,
  });

it('S34: every request of an account counts, and a request without an account is refused', async () => {
  const gate = gateOf(['2/1m']);
  const statuses = [];
  for (const account of ['a', 'a', 'b', 'a', 'nobody']) statuses.push(statusOf(await gate.enter(account)));
  expect(statuses).toEqual(['passed', 'passed', 'passed', 429, 401]);
});

it('S34: a gate without a route over limits that count per route is refused at the start', () => {
  expect(() => gateOf({ allMethods: ['2/1m'] })).toThrow(
    'route: must be a function of the request: only limits that are a list of windows do without a route, got undefined',
  );
});

it('S34: a route may have its own limit beside a list if it has a name, which shows at the start', async () => {
  const gate = gateOf(['3/1m']);
  expect(() => gate.with({ limits: ['1/1m'] })).toThrow(/^route: must be given with limits of a route, /);
  const route = gate.with({ route: 'POST /login', limits: ['1/1m'] });
  const statuses = [];
  for (const each of [route, route, gate, gate, gate]) statuses.push(statusOf(await each.enter('a')));
  expect(statuses).toEqual(['passed', 429, 'passed', 'passed', 429]);
});

it('S34: a function that returns limits per route is a 500 without a route, and names the option', async () => {
  const failures: string[] = [];
  const gate = createGate<string>({
    limiter: createLimiter({ limits: () => ({ allMethods: ['1/1m'] }) }),
    account: (request) => request,
    logger: (_message, error) => failures.push(String(error)),
  });
  expect(statusOf(await gate.enter('a'))).toBe(500);
  expect(failures).toEqual([
    'SubjectError: route must be a string, got undefined: only limits that are a list of windows do without a route',
  ]);
});

it('S34: the route of its decisions is *, and with a resolver it is the name, in the same count', async () => {
  const limiter = createLimiter({ limits: ['5/1m'] });
  const decisions: Decision[] = [];
  const gate = createGate<string>({
    limiter,
    account: () => 'a',
    onEvent: (event) => {
      if (event.type === 'decision') decisions.push(event.decision);
    },
  });
  await gate.enter('x');
  await gate.with({ route: (request) => request }).enter('GET /x');
  expect(decisions.map(({ route, shown }) => [route, shown?.remaining])).toEqual([
    ['*', 4],
    ['GET /x', 3],
  ]);
});
