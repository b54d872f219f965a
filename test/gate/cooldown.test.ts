import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { GateEntry, Passage } from '../../src/gate/gate.ts';
import type { CooldownOptions, GateEvent } from '../../src/gate/index.ts';
import { createGate, createLimiter, type GateOptions, type Limits } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

interface Request {
  readonly account: string;
  readonly route: string;
}

const REQUEST = { account: 'a', route: 'r' };
const clock = createFakeClock(1_000_000);
const settled = () => new Promise(setImmediate);

beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => clock.now() - performance.timeOrigin);
  return () => vi.restoreAllMocks();
});

/** Two processes of a fleet are two copies of the library, but gates of one process share what they know of a store. */
function fleet(cooldown: boolean | CooldownOptions = true, options: Partial<GateOptions<Request>> = {}) {
  const store = createMemoryStore({ clock });
  const events: GateEvent[] = [];
  const open = () =>
    createGate<Request>({
      limiter: createLimiter({ store, limits: { allMethods: ['10000/1m'] }, validate: false }),
      account: ({ account }) => account,
      route: ({ route }) => route,
      cooldown,
      onEvent: (event) => events.push(event),
      logger: false,
      validate: false,
      ...options,
    });
  const gate = open();
  const enter = (request: Request = REQUEST) => gate.enter(request) as GateEntry;
  const passage = (request: Request = REQUEST): Passage => {
    const entry = enter(request);
    if (entry.kind !== 'proceed') throw new Error(`answered ${entry.reply.status}`);
    return entry;
  };
  const status = (request?: Request) => {
    const entry = enter(request);
    return entry.kind === 'answer' ? entry.reply.status : 200;
  };
  return { gate, store, events, enter, passage, status };
}

const answer = (status: number, fields: Record<string, string> = {}) => ({
  status,
  header: (name: string) => fields[name.toLowerCase()],
});

describe('a gate with cooldown', () => {
  it('S30: a 429 of the provider pauses its account and route until retry-after, and the client is told so', () => {
    const { enter, passage, status, events } = fleet();
    expect(passage().settle(answer(429, { 'retry-after': '3' }))).toMatchObject({ headers: {}, stripRateLimit: true });
    expect(events.at(-1)).toMatchObject({ type: 'provider_rejected' });
    const entry = enter();
    if (entry.kind !== 'answer') throw new Error('the request was let through');
    expect(entry.reply.status).toBe(429);
    expect(entry.reply.headers).toMatchObject({ 'retry-after': '3' });
    expect(entry.reply.headers).not.toHaveProperty('x-ratelimit-limit');
    expect(JSON.parse(String(entry.reply.body))).toMatchObject({
      type: 'provider/too_many_requests',
      detail: 'The provider takes no more requests of this account now; retry in 3 s.',
    });
    expect(entry.decision?.blocked).toEqual({ forMs: 3_000, reason: 'provider' });
    expect([status({ account: 'b', route: 'r' }), status({ account: 'a', route: 's' })]).toEqual([200, 200]);
  });

  it('S30: after the pause the first request goes alone, and the others when the provider accepted it', async () => {
    const { passage, status, events } = fleet();
    passage().settle(answer(429, { 'retry-after': '3' }));
    clock.advance(2_999);
    expect(status()).toBe(429);
    clock.advance(1);
    const probe = passage();
    expect([status(), status()]).toEqual([429, 429]);
    clock.advance(5_000);
    expect(status()).toBe(429);
    probe.settle(answer(200));
    await settled();
    expect([status(), status()]).toEqual([200, 200]);
    expect(events.filter(({ type }) => type === 'cooldown')).toMatchObject([
      { state: 'started', target: { account: 'a', route: 'r' }, forMs: 3_000 },
      { state: 'ended', forMs: 0 },
    ]);
  });

  it('S30: an attempt that nobody answered ends no pause', () => {
    const { passage, status } = fleet({ statuses: [429, 504] });
    passage().settle(answer(429));
    clock.advance(1_000);
    passage().settle({ status: 504, unanswered: true });
    expect(status()).toBe(429);
    clock.advance(10_000);
    expect(status()).toBe(200);
  });

  it('S29: a store that cannot say who tries lets the request go, and its slot comes back', async () => {
    const store = createMemoryStore({ clock });
    const limits = { allMethods: { windows: ['9/1m'], inFlight: 1 } };
    const limiter = createLimiter({ store, limits, validate: false });
    const { passage, status } = fleet(true, { limiter });
    const refused = passage();
    refused.settle(answer(429));
    void refused.end?.();
    clock.advance(1_000);
    vi.spyOn(store, 'cooldown').mockImplementationOnce(() => {
      throw new Error('no room');
    });
    const tries = passage();
    expect(status()).toBe(429);
    void tries.end?.();
    expect(await limiter.inFlight(REQUEST)).toEqual({ running: 0, max: 1 });
  });

  it('S5: a request that waits for the one that tries charges nothing', () => {
    const { passage, status, gate, store } = fleet();
    passage().settle(answer(429));
    clock.advance(1_000);
    passage();
    clock.advance(1_000);
    expect([status(), status()]).toEqual([429, 429]);
    expect(gate.throws).toBe(false);
    expect(store.stats().keys).toBe(1);
    const last = passage({ account: 'a', route: 's' });
    expect(last.decision?.shown?.remaining).toBe(9_999);
  });

  it('S30: a thousand refusals at once make one pause, and later ones of earlier requests change nothing', async () => {
    const { passage, status, store, events } = fleet();
    const passages = Array.from({ length: 1_000 }, () => passage());
    const cooldown = vi.spyOn(store, 'cooldown');
    for (const one of passages.slice(0, 500)) one.settle(answer(429, { 'retry-after': '3' }));
    clock.advance(1_000);
    for (const one of passages.slice(500, 900)) one.settle(answer(429, { 'retry-after': '60' }));
    expect(await store.blocked({ account: 'a', route: 'r' })).toEqual({ forMs: 2_000, reason: 'provider' });
    clock.advance(2_000);
    const probe = passage();
    probe.settle(answer(200));
    await settled();
    for (const one of passages.slice(900)) one.settle(answer(429, { 'retry-after': '60' }));
    expect(status()).toBe(200);
    expect(cooldown.mock.calls.map(([, { kind }]) => kind)).toEqual(['start', 'probe', 'end']);
    expect(events.filter(({ type }) => type === 'cooldown')).toHaveLength(2);
  });

  it('S30: without retry-after the pause doubles for each refusal in a row, and begins anew after an accepted one', async () => {
    const { passage, status, store } = fleet({ defaultMs: 500 });
    const lengths: unknown[] = [];
    const refuse = (one = passage()): void => {
      one.settle(answer(429));
      const forMs = store.blocked({ account: 'a', route: 'r' })?.forMs ?? 0;
      lengths.push(forMs);
      clock.advance(forMs);
    };
    for (let i = 0; i < 9; i++) refuse();
    expect(lengths.splice(0)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    passage().settle(answer(200));
    await settled();
    expect(status()).toBe(200);
    refuse();
    expect(lengths).toEqual([500]);
  });

  it.each<[string, number, Record<string, string>, number | undefined]>([
    ['a date', 429, { 'retry-after': 'Fri, 01 Jan 2027 00:00:09 GMT', date: 'Fri, 01 Jan 2027 00:00:00 GMT' }, 9_000],
    ['a 503 with retry-after', 503, { 'retry-after': '2' }, 2_000],
    ['a 503 without', 503, {}, undefined],
    ['a fraction', 429, { 'retry-after': '1.5' }, 1_500],
    ['a year', 429, { 'retry-after': '31536000' }, 3_600_000],
    ['more seconds than there are', 429, { 'retry-after': '999999999999999' }, 3_600_000],
    ['words', 429, { 'retry-after': 'soon' }, 1_000],
    ['a negative number', 429, { 'retry-after': '-3' }, 1_000],
    ['nothing to wait for', 429, { 'retry-after': '0' }, 1_000],
    ['two values', 429, { 'retry-after': '3, 4' }, 1_000],
    ['another error', 500, { 'retry-after': '3' }, undefined],
  ])('S30: retry-after is untrusted: %s', (_, status, fields, forMs) => {
    const { passage, store } = fleet();
    passage().settle(answer(status, fields));
    expect(store.blocked({ account: 'a', route: 'r' })?.forMs).toBe(forMs);
  });

  it('S30: a date is compared with the own clock if the provider sends none of its own', () => {
    const { passage, store } = fleet();
    vi.spyOn(Date, 'now').mockReturnValue(Date.parse('Fri, 01 Jan 2027 00:00:00 GMT'));
    passage().settle(answer(429, { 'retry-after': 'Fri, 01 Jan 2027 00:00:07 GMT' }));
    expect(store.blocked({ account: 'a', route: 'r' })?.forMs).toBe(7_000);
  });

  it('S30: scope, maxMs and statuses', () => {
    const { passage, status, store } = fleet({ scope: 'account', maxMs: 2_000, statuses: [529] });
    passage().settle(answer(429, { 'retry-after': '9' }));
    expect(status()).toBe(200);
    passage().settle(answer(529, { 'retry-after': '9' }));
    expect([status(), status({ account: 'a', route: 's' }), status({ account: 'b', route: 'r' })]).toEqual([
      429, 429, 200,
    ]);
    expect(store.blocked({ account: 'a' })?.forMs).toBe(2_000);
  });

  it.each([
    ['windows of a route', { allMethods: ['9000 tokens/1m'] }, () => 'r'],
    ['windows that all routes share', ['9000 tokens/1m'], () => 'r'],
    ['a gate without a route', ['60/1m', '9000 tokens/1m'], undefined],
  ] as [string, Limits, (() => string) | undefined][])(
    'S30, S33: a pause holds for a cost of another unit than requests: %s',
    (_, limits, route) => {
      const limiter = createLimiter({ store: createMemoryStore({ clock }), limits, validate: false });
      const { passage, status } = fleet(true, { limiter, route, cost: () => ({ tokens: 5 }) });
      passage().settle(answer(429, { 'retry-after': '3' }));
      expect(status()).toBe(429);
      clock.advance(3_000);
      const probe = passage();
      expect(status()).toBe(429);
      probe.settle(answer(200));
      expect(status()).toBe(200);
    },
  );

  it('S30, S31: with scope provider, a refusal pauses every account of the provider, until one request was accepted', async () => {
    const limiter = createLimiter({
      store: createMemoryStore({ clock }),
      limits: { allMethods: ['1000/1m'], groups: { provider: ['5000/1m'] } },
      validate: false,
    });
    interface Routed extends Request {
      readonly provider?: string;
    }
    const gate = createGate<Routed>({
      limiter,
      account: ({ account }) => account,
      route: ({ route }) => route,
      groups: ({ provider }) => (provider === undefined ? undefined : { provider }),
      cooldown: { scope: 'provider' },
      logger: false,
      validate: false,
    });
    const enter = (account: string, provider?: string) =>
      gate.enter({ account, route: 'r', ...(provider && { provider }) }) as GateEntry;
    const passed = (entry: GateEntry): Passage => {
      if (entry.kind !== 'proceed') throw new Error(`answered ${entry.reply.status}`);
      return entry;
    };
    passed(enter('a', 'p1')).settle(answer(429, { 'retry-after': '3' }));
    const paused = enter('b', 'p1');
    if (paused.kind !== 'answer') throw new Error('the request was let through');
    expect(JSON.parse(String(paused.reply.body))).toMatchObject({
      type: 'provider/too_many_requests',
      detail: 'The provider takes no more requests of the group provider now; retry in 3 s.',
    });
    passed(enter('b', 'p2'));
    passed(enter('b')).settle(answer(429));
    passed(enter('b'));
    clock.advance(3_000);
    const probe = passed(enter('c', 'p1'));
    expect([enter('a', 'p1').kind, enter('b', 'p1').kind]).toEqual(['answer', 'answer']);
    probe.settle(answer(200));
    await settled();
    expect([enter('a', 'p1').kind, enter('b', 'p1').kind]).toEqual(['proceed', 'proceed']);
    expect(() => fleet({ scope: 'provider' })).toThrow(/^cooldown.scope: needs the group limits.groups.provider/);
  });

  it("S30: the handler reports its provider's answer, and its own response no longer matters", async () => {
    const { passage, status } = fleet(true, { providerAnswers: false });
    const first = passage();
    expect(await first.cooldown(new Response(null, { status: 429, headers: { 'retry-after': '3' } }))).toEqual({
      state: 'started',
      target: { account: 'a', route: 'r' },
      forMs: 3_000,
    });
    first.settle(answer(200));
    expect(status()).toBe(429);
    clock.advance(3_000);
    const probe = passage();
    probe.settle(answer(200));
    expect(status()).toBe(429);
    expect(await probe.cooldown({ status: 200, headers: { 'Content-Type': 'text/plain' } })).toMatchObject({
      state: 'ended',
    });
    expect(status()).toBe(200);
  });

  it('S30: the request that tries and is refused pauses again', () => {
    const { passage, status, store } = fleet();
    passage().settle(answer(429, { 'retry-after': '1' }));
    clock.advance(1_000);
    passage().settle(answer(429, { 'retry-after': '5' }));
    expect([status(), store.blocked({ account: 'a', route: 'r' })?.forMs]).toEqual([429, 5_000]);
  });

  it('S30: if the request that tries is not answered for 10 seconds, the others follow', () => {
    const { passage, status } = fleet();
    passage().settle(answer(429));
    clock.advance(1_000);
    passage();
    clock.advance(9_999);
    expect(status()).toBe(429);
    clock.advance(1_000);
    expect([status(), status()]).toEqual([200, 200]);
  });

  it("S16: a handler's own 429 pauses nothing, if providerAnswers says so", () => {
    const { passage, status } = fleet(true, { providerAnswers: ({ header }) => header('x-provider') === '1' });
    passage().settle(answer(429, { 'retry-after': '3' }));
    expect(status()).toBe(200);
    passage().settle(answer(429, { 'retry-after': '3', 'x-provider': '1' }));
    expect(status()).toBe(429);
  });

  it("S16: 'pass' is the provider's answer with all of its fields", () => {
    const { passage, events } = fleet(false, { providerAnswers: 'pass' });
    expect(passage().settle(answer(429))).toEqual({ headers: {}, stripRateLimit: false });
    expect(events.at(-1)?.type).toBe('provider_rejected');
  });

  it('S12: an answer of a cache, or of another gate, says nothing about the provider', () => {
    const { passage, status } = fleet();
    passage().settle({ ...answer(429, { 'retry-after': '3' }), fromGate: true });
    expect(status()).toBe(200);
  });

  it('S17: if the store fails, the failure is an event, and the next refusal calls it again', async () => {
    const { passage, store, events, status } = fleet();
    const cooldown = vi.spyOn(store, 'cooldown').mockImplementationOnce(() => {
      throw new Error('boom');
    });
    const [first, second] = [passage(), passage()];
    first.settle(answer(429));
    await settled();
    expect(events).toContainEqual(expect.objectContaining({ type: 'failure', stage: 'cooldown' }));
    second.settle(answer(429));
    expect([cooldown.mock.calls.length, status()]).toEqual([2, 429]);
  });
});

it.each<[unknown, RegExp]>([
  [{ scope: 'all' }, /^cooldown.scope: must be one of account, route, provider/],
  [{ defaultMs: 0 }, /^cooldown.defaultMs: must be an integer from 1 to 3600000/],
  [{ maxMs: 1e12 }, /^cooldown.maxMs: must be an integer from 1 to 31536000000/],
  [{ statuses: [] }, /^cooldown.statuses: must be a list/],
  [{ statuses: [200] }, /^cooldown.statuses: must be a list/],
  [{ max: 1 }, /^cooldown.max: unknown option/],
  ['yes', /^cooldown: must be a plain object/],
])('a cooldown cannot be %j', (wrong, message) => {
  expect(() => fleet(wrong as never)).toThrow(message);
});

it('a passage of a gate without cooldown refuses a report, and a report must be a response', async () => {
  await expect(fleet(false).passage().cooldown({ status: 429, headers: {} })).rejects.toThrow(
    /^cooldown: must be given to the gate/,
  );
  await expect(
    fleet()
      .passage()
      .cooldown({ status: '429' } as never),
  ).rejects.toThrow(/^response: must be the response of fetch/);
});
