import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { format } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { StoreFullError } from '../../src/base/errors.ts';
import { after } from '../../src/base/maybe-promise.ts';
import type { Decision } from '../../src/core/decision.ts';
import { decorateStore } from '../../src/core/decorate-store.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import type { Gate, GateEntry, Passage } from '../../src/gate/gate.ts';
import { GATE_CHANNEL, type GateEvent, type HandlerResponse } from '../../src/gate/index.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { NOT_OPTIONS } from '../support/not-options.ts';

interface Request {
  account?: string;
  route?: string;
  cached?: boolean;
}

function gateOf(options: Partial<GateOptions<Request>> = {}, store: LimitStore = createMemoryStore()) {
  const events: GateEvent[] = [];
  const limiter = createLimiter({ store, limits: { allMethods: ['2/1m'] } });
  const gate = createGate<Request>({
    limiter,
    account: (request) => request.account,
    route: (request) => request.route,
    onEvent: (event) => events.push(event),
    logger: false,
    ...options,
  });
  return { gate, limiter, events };
}

const REQUEST = { account: 'a', route: 'r' };
const boom = () => {
  throw new Error('boom');
};

/** A `finalCost`: failures cost nothing, and any other response may name its cost. */
function byStatusAndField({ status, header }: HandlerResponse): number | undefined {
  const cost = header('x-cost');
  return cost === undefined ? (status >= 500 ? 0 : undefined) : Number(cost);
}
const remaining = async (limiter: ReturnType<typeof gateOf>['limiter']) => (await limiter.peek(REQUEST))[0]?.remaining;

function passage(entry: GateEntry): Passage {
  if (entry.kind !== 'proceed') throw new Error(`answered ${entry.reply.status}`);
  return entry;
}

function problem(entry: GateEntry): Record<string, unknown> {
  if (entry.kind !== 'answer') throw new Error('the request was let through');
  return { headers: entry.reply.headers, ...JSON.parse(String(entry.reply.body)) };
}

describe('the stages', () => {
  it('returns without a promise if no resolver and no store returns one', () => {
    const entry = gateOf().gate.enter(REQUEST);
    expect(passage(entry as GateEntry).headers).toMatchObject({ 'x-ratelimit-remaining': '1' });
  });

  it('waits for asynchronous resolvers', async () => {
    const { gate } = gateOf({
      account: async ({ account }) => account,
      cost: async () => 2,
      provider: () => undefined,
    });
    expect(passage(await gate.enter(REQUEST)).decision?.cost).toBe(2);
  });

  it('S5, S8: a 429 has the error object and the rate-limit headers, and charges nothing', async () => {
    const { gate, limiter } = gateOf();
    for (let i = 0; i < 2; i++) passage(await gate.enter(REQUEST));
    expect(problem(await gate.enter(REQUEST, 'req-9'))).toMatchObject({
      status: 429,
      type: 'api/too_many_requests',
      req_id: 'req-9',
      headers: {
        'retry-after': '60',
        'x-ratelimit-reset': '60',
        'x-ratelimit-limit': '2',
        'x-ratelimit-remaining': '0',
      },
    });
    expect(await remaining(limiter)).toBe(0);
  });

  it.each([undefined, 0, '5'])('a `cost` that resolves to %j is a 500, and charges nothing', async (cost) => {
    const { gate, limiter } = gateOf({ cost: (async () => cost) as never, logger: false });
    expect(problem(await gate.enter(REQUEST)).status).toBe(500);
    expect((await limiter.peek({ account: 'a', route: 'r' })).every(({ startedAt }) => startedAt === undefined)).toBe(
      true,
    );
  });

  it('S8, S11: a cost that can never fit gets 422 with a type of its own and without retry-after', async () => {
    const { gate, events, limiter } = gateOf({ cost: () => 3 });
    const { headers, ...never } = problem(await gate.enter(REQUEST));
    expect(never).toMatchObject({ status: 422, type: 'api/cost_exceeds_limit' });
    expect(never.detail).toMatch(/waiting does not help/);
    expect(headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '2' });
    expect(headers).not.toHaveProperty('retry-after');
    expect(events).toMatchObject([{ type: 'decision', decision: { accepted: false, impossible: true } }]);
    expect(await remaining(limiter)).toBe(2);
  });

  it('S9, S11: a max of 0 is such a limit; in a degraded decision it is a 429, without any field', async () => {
    const store = createMemoryStore();
    const closed = createLimiter({ store, limits: { allMethods: ['0/1m'] } });
    expect(problem(await gateOf({ limiter: closed }).gate.enter(REQUEST)).type).toBe('api/cost_exceeds_limit');
    const degraded = decorateStore(store, {
      consume:
        (consume) =>
        (...given) =>
          after(consume(...given), (decision) => decision.asDegraded()),
    });
    const local = createLimiter({ store: degraded, limits: { allMethods: ['0/1m'] } });
    const { headers, ...later } = problem(await gateOf({ limiter: local }).gate.enter(REQUEST));
    expect(later).toMatchObject({ status: 429, type: 'api/too_many_requests' });
    expect(Object.keys(Object(headers)).filter((name) => /ratelimit|retry/.test(name))).toEqual([]);
  });

  it('the names of windows and the partition key are in the IETF fields; if the function fails, its key is missing', async () => {
    const limiter = createLimiter({
      store: createMemoryStore(),
      limits: { allMethods: [{ name: 'per-minute', window: '9/1m' }] },
    });
    const fieldOf = async (partitionKey: GateOptions<Request>['partitionKey']) => {
      const { gate, events } = gateOf({ limiter, headers: 'ietf', partitionKey });
      const { headers } = passage(await gate.enter(REQUEST));
      return [headers['ratelimit-policy'], events.flatMap((event) => (event.type === 'failure' ? event.stage : []))];
    };
    const without = '"per-minute";q=9;w=60';
    expect(await fieldOf(({ account, route }) => `${account} ${route}`)).toEqual([`${without};pk=:YSBy:`, []]);
    expect(await fieldOf(() => undefined)).toEqual([without, []]);
    for (const bad of [boom, () => 5, async () => 'a', () => 'x'.repeat(257)])
      expect(await fieldOf(bad as never)).toEqual([without, ['partitionKey']]);
    expect(() => gateOf({ partitionKey: () => 'a' })).toThrow("partitionKey: needs 'ietf' in headers");
  });

  it('a limit that is adjusted has the names of its new windows', async () => {
    const { gate, limiter } = gateOf({ headers: 'ietf' });
    limiter.adjust({}, [{ name: 'per-minute', window: '5/1m' }]);
    expect(passage(await gate.enter(REQUEST)).headers['ratelimit-policy']).toBe('"per-minute";q=5;w=60');
  });

  it('S12: a request that a cache will answer never reaches the limiter', async () => {
    const { gate, limiter } = gateOf({ cached: () => true });
    expect(passage(await gate.enter(REQUEST)).headers).toEqual({});
    expect(await remaining(limiter)).toBe(2);
  });
});

describe('after the handler', () => {
  it('S12: a request that a cache answered after all is refunded', async () => {
    const { gate, limiter } = gateOf();
    passage(await gate.enter(REQUEST)).settle({ status: 200, cached: true });
    await expect.poll(() => remaining(limiter)).toBe(2);
  });

  it('S13: abandon refunds once, and not after settle', async () => {
    const { gate, limiter, events } = gateOf();
    const first = passage(await gate.enter(REQUEST));
    await first.abandon();
    await first.abandon();
    expect(await remaining(limiter)).toBe(2);
    const second = passage(await gate.enter(REQUEST));
    second.settle({ status: 200 });
    await second.abandon();
    expect(await remaining(limiter)).toBe(1);
    expect(events.filter((event) => event.type === 'refund')).toHaveLength(1);
  });

  it.each([
    ['refunds failures', 503, {}, 2, { type: 'refund', refunded: true }],
    ['keeps the charge of other responses', 200, {}, 1, { type: 'decision' }],
    ['settles another cost', 200, { 'X-Cost': '2' }, 0, { type: 'settled', cost: 2, changed: true }],
    ['charges beyond the limit', 200, { 'X-Cost': '7' }, 0, { type: 'settled', cost: 7, changed: true }],
    ['keeps the charge if the cost is the one that was charged', 200, { 'X-Cost': '1' }, 1, { type: 'decision' }],
    ['is asked about a 429 of the handler too', 429, { 'X-Cost': '0' }, 2, { type: 'refund', refunded: true }],
  ])('S13: finalCost %s', async (_, status, fields, left, event) => {
    const { gate, limiter, events } = gateOf({ finalCost: byStatusAndField });
    const entered = passage(await gate.enter(REQUEST));
    const given = new Headers(fields);
    const outcome = { status, header: (name: string) => given.get(name) ?? undefined };
    // The fields show the charge, whatever the request costs in the end.
    expect(entered.settle(outcome).headers).toEqual(
      status === 429 ? {} : expect.objectContaining({ 'x-ratelimit-remaining': '1' }),
    );
    entered.settle({ status: 500 });
    await entered.abandon();
    expect([await remaining(limiter), events.length]).toEqual([left, event.type === 'decision' ? 1 : 2]);
    expect(events.at(-1)).toMatchObject(event);
  });

  it("S13: finalCost is not asked about a cache's answer, another gate's answer, or a request without a limit", async () => {
    const finalCost = vi.fn(() => 0);
    const { gate, limiter, events } = gateOf({ finalCost });
    passage(await gate.enter(REQUEST)).settle({ status: 200, cached: true });
    passage(await gate.enter(REQUEST)).settle({ status: 429, fromGate: true });
    passage(await gate.enter({})).settle({ status: 200 });
    await passage(await gate.enter(REQUEST)).abandon();
    expect(finalCost).not.toHaveBeenCalled();
    expect([await remaining(limiter), events.filter(({ type }) => type === 'refund').length]).toEqual([1, 2]);
  });

  it('S13: a handler that has settled its decision is faster than finalCost', async () => {
    const { gate, limiter, events } = gateOf({ finalCost: () => 2 });
    const entered = passage(await gate.enter(REQUEST));
    await limiter.settle(entered.decision as Decision, 0);
    entered.settle({ status: 200 });
    await expect.poll(() => events.at(-1)).toMatchObject({ type: 'settled', cost: 2, changed: false });
    expect(await remaining(limiter)).toBe(2);
  });

  it.each([
    ['throws', () => boom(), /^boom$/],
    ['returns -1', () => -1, /^cost must be an integer from 0 to 9007199254740991, got -1$/],
    ['returns 0.5', () => 0.5, /^cost must be an integer from 0 /],
    ['returns true', () => true, /^cost must be an integer from 0 /],
    ['returns null', () => null, /^cost must be an integer from 0 /],
    ['is asynchronous', async () => 0, /^finalCost\(\): must not return a promise, got a promise$/],
    ['rejects', async () => boom(), /^finalCost\(\): must not return a promise/],
  ])('S13: finalCost that %s is a failure, and the charge stays', async (_, finalCost, message) => {
    const logger = vi.fn();
    const { gate, limiter, events } = gateOf({ finalCost: finalCost as () => number, logger });
    const settled = passage(await gate.enter(REQUEST, 'req_1')).settle({ status: 200 });
    expect(settled.headers['x-ratelimit-remaining']).toBe('1');
    await new Promise((resolve) => setImmediate(resolve));
    const error = expect.objectContaining({ message: expect.stringMatching(message) });
    expect(events.slice(1)).toEqual([{ type: 'failure', requestId: 'req_1', stage: 'finalCost', error }]);
    expect(logger.mock.calls).toEqual([['headgate: finalCost failed (req_id req_1)', error]]);
    expect(await remaining(limiter)).toBe(1);
  });

  it('S13: a store that cannot settle is a failure', async () => {
    const { gate, events } = gateOf({ finalCost: () => 3 }, Object.assign(createMemoryStore(), { settle: boom }));
    passage(await gate.enter(REQUEST)).settle({ status: 200 });
    await expect.poll(() => events.at(-1)).toMatchObject({ type: 'failure', stage: 'settle' });
  });

  it('S13: a route can have a finalCost of its own', async () => {
    const { gate, limiter } = gateOf({ finalCost: () => 0 });
    passage(await gate.with({ finalCost: () => undefined }).enter(REQUEST)).settle({ status: 200 });
    expect(await remaining(limiter)).toBe(1);
    passage(await gate.with({ cost: 1 }).enter(REQUEST)).settle({ status: 200 });
    expect(await remaining(limiter)).toBe(1);
    expect(() => gate.with({ finalCost: 0 as never })).toThrow(/^finalCost: must be a function, got 0/);
  });

  it('S13: a refunded charge is not shown in the headers', async () => {
    const { gate } = gateOf({ providerAnswers: true });
    const abandoned = passage(await gate.enter(REQUEST));
    await abandoned.abandon();
    expect(abandoned.settle({ status: 503 })).toEqual({ headers: {}, stripRateLimit: false });
    // S16: a 429 of the provider loses all rate-limit headers, refunded or not.
    expect(abandoned.settle({ status: 429 })).toEqual({ headers: {}, stripRateLimit: true });
  });

  it("S16: a handler's own 429 keeps its fields, gets none of ours, and remains charged", async () => {
    const { gate, limiter, events } = gateOf();
    expect(passage(await gate.enter(REQUEST)).settle({ status: 429 })).toEqual({ headers: {}, stripRateLimit: false });
    expect([await remaining(limiter), events.at(-1)?.type]).toEqual([1, 'decision']);
  });

  it('S16: providerAnswers that throws is a failure, and the 429 keeps its fields', async () => {
    const error = new Error('boom');
    const { gate, events } = gateOf({
      providerAnswers: () => {
        throw error;
      },
    });
    const settled = passage(await gate.enter(REQUEST)).settle({ status: 429 });
    expect(settled).toEqual({ headers: {}, stripRateLimit: false });
    expect(events.at(-1)).toMatchObject({ type: 'failure', stage: 'providerAnswers', error });
  });

  it('S16: providerAnswers that is asynchronous is not the provider, and its rejection ends nothing', async () => {
    const providerAnswers = async () => {
      throw new Error('boom');
    };
    const { gate } = gateOf({ providerAnswers: providerAnswers as never });
    expect(passage(await gate.enter(REQUEST)).settle({ status: 429 })).toEqual({ headers: {}, stripRateLimit: false });
    // An unhandled rejection would fail the run.
    await new Promise(setImmediate);
  });

  it.each([0, 'yes', null])('providerAnswers cannot be %j', (wrong) => {
    expect(() => gateOf({ providerAnswers: wrong as never })).toThrow(
      /^providerAnswers: must be true, false, 'pass' or a function of the response, got /,
    );
  });

  it('S6: of three gates, the one with the least left is shown; a refunded charge does not count', async () => {
    const enter = async (max: number, outer?: Passage) => {
      const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: [`${max}/1m`] } });
      return passage(await gateOf({ limiter }).gate.enter(REQUEST, undefined, outer));
    };
    const first = await enter(5);
    const second = await enter(3, first);
    const third = await enter(4, second);
    const shown = () => [third, second, first].map((one) => one.settle({ status: 200 }).headers['x-ratelimit-limit']);
    expect(shown()).toEqual([undefined, '3', undefined]);
    const front = await enter(5);
    const refunded = await enter(3, front);
    await refunded.abandon();
    expect([refunded, front].map((one) => one.settle({ status: 503 }).headers['x-ratelimit-limit'])).toEqual([
      undefined,
      '5',
    ]);
  });

  it('S6: behind a rejection no gate shows its window, nor does one that the request passes afterwards', async () => {
    const [open, shut] = [5, 0].map(
      (max) =>
        gateOf({ limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: [`${max}/1m`] } }) }).gate,
    ) as [Gate<Request>, Gate<Request>];
    const first = passage(await open.enter(REQUEST));
    expect((await shut.enter(REQUEST, undefined, first)).kind).toBe('answer');
    const later = passage(await open.enter(REQUEST, undefined, first));
    expect([later, first].map((one) => one.settle({ status: 200 }).headers)).toEqual([{}, {}]);
  });

  it('S16: a 429 of the provider carries none of our headers and remains charged', async () => {
    const { gate, limiter, events } = gateOf({ providerAnswers: true });
    expect(passage(await gate.enter(REQUEST)).settle({ status: 429 })).toEqual({ headers: {}, stripRateLimit: true });
    expect(await remaining(limiter)).toBe(1);
    expect(events.at(-1)?.type).toBe('provider_rejected');
  });

  it('a response with any other status shows the decision', async () => {
    const settled = passage(await gateOf().gate.enter(REQUEST)).settle({ status: 500 });
    expect(settled).toMatchObject({ stripRateLimit: false, headers: { 'x-ratelimit-limit': '2' } });
  });
});

it('a rejected request that costs more than what is left gets a detail that says so', async () => {
  const { gate } = gateOf();
  const costly = gate.with({ cost: 2 });
  await gate.enter(REQUEST);
  const detailOf = async (entered: Gate<Request>) => {
    const entry = await entered.enter(REQUEST);
    return entry.kind === 'answer' && JSON.parse(Buffer.from(entry.reply.body).toString()).detail;
  };
  expect(await detailOf(costly)).toMatch(/^The rate limit has not enough left for this request; retry in \d+ s\.$/);
  await gate.enter(REQUEST);
  expect(await detailOf(costly)).toMatch(/^The rate limit is used up; retry in \d+ s\.$/);
});

describe('failures', () => {
  it.each([null, 7])('an account that is %j is a 500 that says what to return if there is none', async (account) => {
    const { gate, events } = gateOf({ account: () => account as never });
    const entry = await gate.enter(REQUEST);
    expect(entry).toMatchObject({ kind: 'answer', reply: { status: 500 } });
    expect(events).toMatchObject([
      {
        stage: 'account',
        error: { message: `account: must resolve to a string; return undefined if there is none, got ${account}` },
      },
    ]);
  });

  it.each([
    ['account', { account: boom }],
    ['route', { route: boom }],
    ['cost', { cost: boom }],
    ['cached', { cached: boom }],
    ['cached', { cached: () => 'no' as never }],
    ['cached', { cached: () => Promise.resolve({} as never) }],
    ['provider', { provider: boom }],
    ['account', { account: () => Promise.reject(new Error('boom')) }],
    ['cost', { cost: () => Promise.reject(new Error('boom')) }],
    ['limits', { cost: () => Number.NaN }],
    ['account', { account: () => 7 as never }],
  ] as const)('a failing %s resolver is a 500, is named in the event, and charges nothing', async (stage, options) => {
    const { gate, limiter, events } = gateOf(options);
    const { detail, ...answer } = problem(await gate.enter(REQUEST));
    expect(answer).toMatchObject({ status: 500, type: 'errors/unexpected_error' });
    expect(detail).not.toMatch(/boom/);
    expect(events).toMatchObject([{ type: 'failure', stage }]);
    expect(await remaining(limiter)).toBe(2);
  });

  it.each<[string, Partial<GateOptions<Request>>]>([
    ['without a listener', { onEvent: undefined }],
    ['with a listener', {}],
    [
      'with a listener that throws',
      {
        onEvent: () => {
          throw new Error('listener');
        },
      },
    ],
  ])(
    'each failure is written to the console once, %s, also if a subscriber of the channel listens',
    async (name, options) => {
      const written = vi.spyOn(console, 'error').mockImplementation(() => {});
      const subscriber = vi.fn();
      subscribe(GATE_CHANNEL, subscriber);
      try {
        const { req_id } = problem(await gateOf({ route: boom, logger: undefined, ...options }).gate.enter(REQUEST));
        const lines = written.mock.calls.map((call) => format(...call));
        expect(lines.filter((line) => line.startsWith('headgate: route failed'))).toHaveLength(1);
        expect(lines.join('\n')).toMatch(`headgate: route failed (req_id ${req_id}): Error: boom`);
        expect(lines.some((line) => line.startsWith('headgate: the listener onEvent failed: Error: listener'))).toBe(
          name === 'with a listener that throws',
        );
      } finally {
        unsubscribe(GATE_CHANNEL, subscriber);
        written.mockRestore();
      }
    },
  );

  it('each failure goes to the logger once, a 503 and a refund too; false logs nothing', async () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const down = Object.assign(createMemoryStore(), {
        consume: () => {
          throw new StoreFullError(1);
        },
      });
      const logger = vi.fn();
      await gateOf({ logger }, down).gate.enter(REQUEST, 'req_1');
      expect(logger.mock.calls).toEqual([['headgate: limits failed (req_id req_1)', expect.any(StoreFullError)]]);
      const noRefund = Object.assign(createMemoryStore(), { settle: boom });
      await passage(await gateOf({ logger }, noRefund).gate.enter(REQUEST, 'req_2')).abandon();
      expect(logger.mock.calls.slice(1)).toEqual([['headgate: refund failed (req_id req_2)', new Error('boom')]]);
      await gateOf({ logger: false }, down).gate.enter(REQUEST);
      expect(written).not.toHaveBeenCalled();
    } finally {
      written.mockRestore();
    }
  });

  it('a client can write neither a line nor a format nor a long value to the log', async () => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const { gate } = gateOf({ logger: undefined, account: () => ['x'.repeat(100_000)] as never });
      await gate.enter(REQUEST, `%c%d\n${'y'.repeat(100_000)}`);
      const text = format(...(written.mock.calls[0] as [string]));
      expect(text).toMatch(
        /account failed \(req_id \?c\?d\?y+\): OptionError: account: must resolve to a string; .*, got an array/,
      );
      expect(text.length).toBeLessThan(3_000);
      // An error that cannot be read does not change the answer.
      const unreadable = Object.defineProperty(new Error('boom'), 'stack', {
        get: () => {
          throw new Error('no');
        },
      });
      const broken = gateOf({
        logger: undefined,
        account: () => {
          throw unreadable;
        },
      });
      expect(problem(await broken.gate.enter(REQUEST)).status).toBe(500);
      expect(format(...(written.mock.calls[1] as [string]))).toMatch(/account failed .*: boom$/);
    } finally {
      written.mockRestore();
    }
  });

  it('two failing resolvers leave no unhandled rejection', async () => {
    const unhandled: unknown[] = [];
    const listen = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', listen);
    const { gate } = gateOf({ account: () => Promise.reject(new Error('later')), route: boom });
    expect(problem(await gate.enter(REQUEST)).status).toBe(500);
    await new Promise((resolve) => setTimeout(resolve, 10));
    process.off('unhandledRejection', listen);
    expect(unhandled).toEqual([]);
  });

  it('S17, S18: a store that cannot decide is a 503 without any rate-limit field, never a 429', async () => {
    const full = Object.assign(createMemoryStore(), {
      consume: () => {
        throw new StoreFullError(1);
      },
    });
    const away: LimitStore = Object.assign(createMemoryStore(), {
      synchronous: false,
      consume: () => Promise.reject(new Error('ECONNREFUSED')),
    });
    for (const store of [full, away]) {
      const answer = problem(await gateOf({}, store).gate.enter(REQUEST));
      expect(answer).toMatchObject({ status: 503, type: 'errors/service_unavailable' });
      expect(Object.keys(answer.headers as object)).toEqual(['content-type', 'content-length', 'cache-control']);
    }
  });

  it('a function `limits` that throws is a fault of the program: a 500, and nothing passes', async () => {
    const cause = new TypeError('no such customer');
    const limits = () => {
      throw cause;
    };
    const away: LimitStore = Object.assign(createMemoryStore(), { synchronous: false });
    for (const store of [createMemoryStore(), away]) {
      const { gate, events } = gateOf({ limiter: createLimiter({ store, limits }) });
      expect(problem(await gate.enter(REQUEST))).toMatchObject({ status: 500, type: 'errors/unexpected_error' });
      expect(events).toMatchObject([{ type: 'failure', stage: 'limits', error: { code: 'invalid_option', cause } }]);
    }
  });

  it('a function `limits` that throws an error of a store is a 503', async () => {
    const limits = () => {
      throw new StoreFullError(1);
    };
    const { gate } = gateOf({ limiter: createLimiter({ store: createMemoryStore(), limits }) });
    expect(problem(await gate.enter(REQUEST)).status).toBe(503);
  });

  it('a failing refund emits an event and does not throw', async () => {
    const store = Object.assign(createMemoryStore(), {
      settle: () => {
        throw new Error('boom');
      },
    });
    const { gate, events } = gateOf({}, store);
    await passage(await gate.enter(REQUEST)).abandon();
    expect(events.at(-1)).toMatchObject({ type: 'failure', stage: 'refund' });
  });
});

describe('events', () => {
  it('are also published on the diagnostics channel', async () => {
    const seen: unknown[] = [];
    const listen = (event: unknown) => seen.push(event);
    subscribe(GATE_CHANNEL, listen);
    try {
      await gateOf().gate.enter(REQUEST, 'req-1');
    } finally {
      unsubscribe(GATE_CHANNEL, listen);
    }
    expect(seen).toMatchObject([{ type: 'decision', requestId: 'req-1', decision: { accepted: true } }]);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('listener');
      },
    ],
    ['rejects', () => Promise.reject(new Error('listener'))],
  ])('a listener that %s breaks nothing; its error is logged', async (_, onEvent) => {
    const uncaught = vi.fn();
    process.on('uncaughtExceptionMonitor', uncaught).on('unhandledRejection', uncaught);
    const logger = vi.fn();
    const { gate } = gateOf({ onEvent: onEvent as () => void, logger });
    expect(passage(await gate.enter(REQUEST)).decision?.accepted).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('uncaughtExceptionMonitor', uncaught).off('unhandledRejection', uncaught);
    expect(logger.mock.calls).toEqual([['headgate: the listener onEvent failed', new Error('listener')]]);
    expect(uncaught).not.toHaveBeenCalled();
  });
});

describe('options', () => {
  it.each([
    [{ limiter: {} }, /limiter: must be what/],
    [{ account: 'acc' }, /account: must be a function/],
    [{ route: undefined }, /route: must be a function/],
    [{ cached: true }, /cached: must be a function/],
    [{ deny: true }, /deny: must be a function/],
    [{ allow: ['10.0.0.1'] }, /allow: must be a function/],
    [{ onNoAccount: 'refuse' }, /^onNoAccount: must be 'reject', 'pass', \{ status: 401 \} or .*, got "refuse"$/],
    [{ onNoAccount: null }, /onNoAccount: must be .*, got null$/],
    [{ onNoAccount: { detail: 'Log in.' } }, /onNoAccount: must be .*, got an object$/],
    [{ onNoAccount: { status: 404 } }, /onNoAccount: must be .*, got an object$/],
    [{ onNoAccount: { status: 401, title: 'x' } }, /onNoAccount\.title: unknown option \(expected status or detail\)/],
    [{ onNoAccount: { status: 403, detail: '' } }, /onNoAccount\.detail: must be a text that is not empty/],
    [{ headers: 'X-RateLimit' }, /headers: must be a list of/],
    [{ problemMediaType: 'text/html' }, /problemMediaType: must be one of/],
    [{ onEvent: 1 }, /onEvent: must be a function/],
    [{ logger: true }, /logger: must be false or a function/],
    [{ idempotancy: 1 }, /idempotancy: unknown option/],
  ])('%j is rejected with the name of the option', (options, message) => {
    expect(() => gateOf(options as never)).toThrow(message);
  });

  it('the media type of RFC 9457 and the IETF headers are options', async () => {
    const { gate } = gateOf({ problemMediaType: 'application/problem+json', headers: 'ietf', cost: () => 3 });
    expect(problem(await gate.enter(REQUEST)).headers).toMatchObject({
      'content-type': 'application/problem+json',
      ratelimit: '"all-methods-1m";r=2;t=60',
    });
  });
});

describe('a route with its own options', () => {
  const limiter = () => createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } });
  const common = { account: () => 'a', route: () => 'general' };

  it('replaces the options it gives, and keeps the others of its gate', async () => {
    const own = limiter();
    const gate = createGate<string>({ limiter: own, ...common });
    const entry = await gate
      .with({ route: 'POST /own', cost: 2, account: (name) => name, provider: undefined })
      .enter('b');
    expect(entry).toMatchObject({ kind: 'proceed', headers: { 'x-ratelimit-remaining': '3' } });
    expect((await own.peek({ account: 'b', route: 'POST /own' }))[0]?.remaining).toBe(3);
    expect(await gate.enter('b')).toMatchObject({ headers: { 'x-ratelimit-remaining': '4' } });
  });

  it('switches idempotency on or off', async () => {
    const idempotency = createIdempotency({ store: createMemoryClaimStore() });
    const idempotent = () => ({ detail: 'invalid key' });
    const gate = createGate<string>({ limiter: limiter(), ...common });
    expect(await gate.with({ idempotency, idempotent }).enter('r')).toMatchObject({ reply: { status: 422 } });
    expect(await gate.with({ idempotent: false }).enter('r')).toMatchObject({ kind: 'proceed' });
    const keyed = createGate<string>({ limiter: limiter(), ...common, idempotency, idempotent });
    expect(await keyed.with({ idempotent: false }).enter('r')).toMatchObject({ kind: 'proceed' });
    expect(await keyed.with({}).enter('r')).toMatchObject({ reply: { status: 422 } });
  });

  it('an invalid option throws when the route is created', () => {
    const gate = createGate<string>({ limiter: limiter(), ...common });
    expect(() => gate.with({ rout: 'x' } as never)).toThrow(/route options.rout/);
    expect(() => gate.with({ idempotent: () => undefined })).toThrow(/idempotent: must be given if idempotency is/);
    expect(() => gate.with({ account: 'a' } as never)).toThrow(/must be a function/);
  });

  it.each(NOT_OPTIONS)('options that are %s throw when the route is created', (_, options) => {
    const gate = createGate<string>({ limiter: limiter(), ...common });
    const error = expect.objectContaining({
      code: 'invalid_option',
      message: expect.stringMatching(/^route options: must be a plain object \(expected deny, .* or answer\), got /),
    });
    expect(() => gate.with(options as never)).toThrow(error);
    expect(() => createGate({ limiter: limiter(), ...common, idempotency: null } as never)).toThrow(
      /^idempotency: must be what createIdempotency\(\) returns, got null/,
    );
  });
});
