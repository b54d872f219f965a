import { expect, it } from 'vitest';
import type { GateEntry, GateEvent } from '../../src/gate/index.ts';
import { fingerprint } from '../../src/http/fingerprint/fingerprint.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import type { LimiterOptions } from '../../src/limits/ports.ts';
import type { WindowSetSource } from '../../src/limits/window-set-source.ts';
import { createMemoryAdjustments } from '../../src/memory.ts';
import { createSharedLimits } from '../../src/shared-limits/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

interface Request {
  readonly plan?: string | undefined;
}

function gateOf(options: Partial<GateOptions<Request>> = {}) {
  const limiter = createLimiter({
    store: createMemoryStore(),
    limits: { default: { allMethods: ['1/1m'] }, plans: { pro: { allMethods: ['9/1m'] } } },
  });
  const events: GateEvent[] = [];
  const logged: unknown[] = [];
  const gate = createGate<Request>({
    limiter,
    account: () => 'a',
    route: () => 'r',
    plan: ({ plan }) => plan,
    onEvent: (event) => events.push(event),
    logger: (_message, error) => logged.push(error),
    ...options,
  });
  return { gate, limiter, events, logged };
}

it.each<[string, LimiterOptions['limits'] | WindowSetSource]>([
  ['plan', { default: ['1/1m'], plans: { pro: {} } }],
  ['provider', { default: ['1/1m'], providers: { google: ['9/1m'] } }],
  [
    'plan',
    createSharedLimits({ base: { default: ['1/1m'], plans: { pro: {} } }, adjustments: createMemoryAdjustments() }),
  ],
])('a gate without the resolver `%s`, by whose names the limits differ, is refused at the start', (name, limits) => {
  const limiter = createLimiter({ limits });
  const options = { limiter, account: () => 'a' };
  const reason = `must be a function of the request: without it, limits.${name}s of the limiter would never apply`;
  expect(() => createGate(options)).toThrow(`${name}: ${reason}`);
  const gate = createGate({ ...options, [name]: () => undefined });
  expect(gate.with({ cost: 2 }).throws).toBe(false);
});

it('only names of `limits` need a resolver: not those of adjustments, or of a function', () => {
  const limiter = createLimiter({ limits: ['1/1m'] });
  limiter.adjust({ plan: 'pro' }, ['9/1m']);
  limiter.adjust({ provider: 'google' }, ['9/1m']);
  expect(createGate({ limiter, account: () => 'a' }).with({}).throws).toBe(false);
  expect(createGate({ limiter: createLimiter({ limits: () => ['1/1m'] }), account: () => 'a' }).throws).toBe(false);
});

const SAME_REQUEST = { method: 'GET', path: '/', contentType: undefined, body: (async function* () {})() };

const limitOf = (entry: GateEntry) =>
  entry.kind === 'proceed' ? entry.headers['x-ratelimit-limit'] : entry.reply.status;

it.each<[string, GateOptions<Request>['plan']]>([
  ['synchronous', ({ plan }) => plan],
  ['asynchronous', async ({ plan }) => plan],
])("plan selects the limits of the customer's plan: a resolver that is %s", async (_kind, plan) => {
  const { gate } = gateOf({ plan });
  expect(limitOf(await gate.enter({}))).toBe('1');
  expect(limitOf(await gate.enter({ plan: 'pro' }))).toBe('9');
  expect(limitOf(await gate.enter({}))).toBe(429);
});

it('a route can have a plan of its own', async () => {
  const { gate } = gateOf();
  expect(limitOf(await gate.with({ plan: () => 'pro' }).enter({}))).toBe('9');
});

it('a plan that limits.plans does not have is a 500 that charges nothing, and never the default limits', async () => {
  const { gate, limiter, events, logged } = gateOf();
  expect(limitOf(await gate.enter({ plan: 'Pro' }))).toBe(500);
  expect(logged).toEqual([expect.objectContaining({ code: 'unknown_plan' })]);
  expect(events).toEqual([expect.objectContaining({ type: 'failure', stage: 'limits' })]);
  expect((await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining).toBe(1);
});

it.each<[string, GateOptions<Request>['plan']]>([
  [
    'throws',
    () => {
      throw new Error('down');
    },
  ],
  [
    'rejects',
    async () => {
      throw new Error('down');
    },
  ],
])('a resolver of the plan that %s is a 500 of its own stage, and charges nothing', async (_how, plan) => {
  const { gate, limiter, events } = gateOf({ plan });
  expect(limitOf(await gate.enter({}))).toBe(500);
  expect(events).toEqual([expect.objectContaining({ type: 'failure', stage: 'plan' })]);
  expect((await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining).toBe(1);
});

it('I4: a retry after a change of plan is the same request, and gets the stored answer', async () => {
  const idempotency = createIdempotency({ store: createMemoryClaimStore() });
  const idempotent = async () => ({ scope: 'app_1', key: 'key_1', fingerprint: await fingerprint(SAME_REQUEST) });
  const { gate } = gateOf({ idempotency, idempotent });
  const first = await gate.enter({ plan: 'pro' });
  if (first.kind !== 'proceed') throw new Error('the request was answered');
  await first.recording?.store({ status: 201, fields: [], body: new Uint8Array() });
  expect(await gate.enter({})).toMatchObject({ kind: 'answer', replayed: true });
  await idempotency.close();
});

it('a plan that is not a function throws when the gate is created', () => {
  expect(() => gateOf({ plan: 'pro' as never })).toThrow(/^plan: must be a function of the request/);
});
