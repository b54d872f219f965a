import { describe, expect, it } from 'vitest';
import { callSizes, callsOf } from '../../bench/simulate/calls.mjs';
import { createPopulation, HOT, shardOf } from '../../bench/simulate/population.mjs';
import { createRandom } from '../../bench/simulate/random.mjs';
import { simulate } from '../../bench/simulate/simulate.mjs';
import { shardsNeeded, utilisationOf } from '../../bench/simulate/sizing.mjs';
import { parseLimit } from '../../src/core/limit.ts';
import { createPlan } from '../../src/core/plan.ts';
import { type CheckBatch, CheckBatcher } from '../../src/stores/shared/check-batcher.ts';

const SECOND = 1e6;
const SERVICE = 7;
const MANY = { max: Number.MAX_SAFE_INTEGER, micros: 1 };

/** One gateway and one server, nothing but the server takes time, nobody is refused. */
const QUEUE = {
  seed: 1,
  accounts: 1_000_000,
  exponent: 1,
  perSecond: 100_000,
  gateways: 1,
  shards: 1,
  decisions: 300_000,
  window: MANY,
  denialMicros: 0,
  cpu: { request: 0, answer: 0, call: 0 },
  serviceOf: () => SERVICE,
  oneWay: () => 0,
};

/** Accounts all alike, three requests a second each where 60 a minute are allowed, for ten seconds. */
const REFUSING = {
  ...QUEUE,
  accounts: 2_000,
  exponent: 1e-9,
  perSecond: 6_000,
  decisions: 60_000,
  window: { max: 60, micros: 60 * SECOND },
};

const share = (part: number, whole: number): number => part / whole;

describe('the queue of a server', () => {
  it.each([0.3, 0.6, 0.9])('is that of M/D/1 where every call takes as long, at a load of %d', (load) => {
    const { shards } = simulate({ ...QUEUE, perSecond: (load / SERVICE) * SECOND });
    const { calls, waitMicros } = shards[0] as { calls: number; waitMicros: number };
    expect(waitMicros / calls / ((load * SERVICE) / (2 * (1 - load)))).toBeCloseTo(1, 1);
  });

  it.each([0.3, 0.6, 0.9])('is that of M/M/1 where calls take exponential times, at a load of %d', (load) => {
    const random = createRandom(2);
    const serviceOf = () => random.exponential(SERVICE);
    const { shards } = simulate({ ...QUEUE, perSecond: (load / SERVICE) * SECOND, serviceOf });
    const { calls, waitMicros } = shards[0] as { calls: number; waitMicros: number };
    expect(waitMicros / calls / ((load * SERVICE) / (1 - load))).toBeCloseTo(1, 1);
  });

  it('is as busy as what comes and what it takes', () => {
    const { mean, most } = utilisationOf(simulate({ ...QUEUE, perSecond: 80_000 }));
    expect(mean).toBeCloseTo(0.56, 2);
    expect(most).toBe(mean);
  });
});

describe('a simulation', () => {
  const FLEET = {
    ...REFUSING,
    exponent: 0.8,
    hotShare: 0.1,
    gateways: 20,
    shards: 3,
    denialMicros: SECOND,
    cpu: { request: 50, answer: 50, call: 0 },
    oneWay: (random: ReturnType<typeof createRandom>) => random.lognormal(100, 0.5),
  };

  it('gives the same figures for the same seed, and others for another', () => {
    const [once, again, other] = [FLEET, FLEET, { ...FLEET, seed: 2 }].map(simulate);
    expect(again).toEqual(once);
    expect(other).not.toEqual(once);
  });

  it('decides every request once', () => {
    const { decisions, accepted, local, shards } = simulate(FLEET);
    expect(decisions).toBe(FLEET.decisions);
    const asked = shards.reduce((sum, { records }) => sum + records, 0);
    expect(asked).toBeLessThanOrEqual(decisions - local);
    expect(asked).toBeGreaterThan(accepted / 2);
  });

  it('keeps so many requests under way where each follows a decision', () => {
    const slow = { ...QUEUE, inFlight: 64, decisions: 20_000, serviceOf: () => 0, oneWay: () => 100 };
    const { decisions, latency, endedMicros } = simulate(slow);
    expect(decisions).toBe(20_000);
    expect([latency.p50, latency.p999]).toEqual([200, 200]);
    // Little's law.
    expect((decisions / endedMicros) * (latency.p50 ?? 0)).toBeCloseTo(64, 0);
  });
});

describe('a slice shorter than a window', () => {
  // Windows are full long before they end: a cycle of window and gap lets through the max.
  const gap = SECOND / 3;
  const accepted = 60 / ((60 * SECOND + gap) / gap);

  it('lets through what it would if it had gone on forever', () => {
    const result = simulate(REFUSING);
    expect(share(result.accepted, result.decisions) / accepted).toBeCloseTo(1, 1);
    expect(result.local).toBe(0);
  });

  it('lets through the same where gateways remember refusals, and asks as seldom as they have to', () => {
    const gateways = 2;
    const result = simulate({ ...REFUSING, gateways, denialMicros: SECOND });
    expect(share(result.accepted, result.decisions) / accepted).toBeCloseTo(1, 1);
    // A gateway hears of an account every two gaps; one in so many is asked for, the others come within the second after it.
    const withinASecond = SECOND / (gateways * gap);
    const refused = result.decisions - result.accepted;
    expect(share(result.local, refused)).toBeCloseTo(withinASecond / (1 + withinASecond), 1);
  });

  it('begins with the refusals that gateways would have heard of before', () => {
    const gateways = 2;
    const accounts = 8_000;
    const many = { ...REFUSING, accounts, perSecond: 3 * accounts, decisions: 30 * accounts };
    const { decisions, accepted, local } = simulate({ ...many, gateways, denialMicros: 60 * SECOND });
    // Each gateway asks once in a cycle of an account; the slice has ten seconds.
    const asked = (accounts * gateways * 10 * SECOND) / (60 * SECOND + gap);
    expect((decisions - accepted - local) / asked).toBeCloseTo(1, 1);
  });

  it('lets nobody through wrongly: an account that begins within it gets its max', () => {
    const result = simulate({ ...REFUSING, perSecond: 0.000_001, accounts: 1, inFlight: 200, decisions: 5_000 });
    expect(result.accepted).toBe(60);
  });
});

describe('calls', () => {
  const limit = parseLimit(['60/1m']);
  const plan = createPlan(limit, limit);

  /** The batches that the Redis store sends. */
  function sent(accounts: readonly string[], oneAccountPerBatch: boolean): Promise<readonly CheckBatch[]> {
    return new Promise((resolve) => {
      const batcher = new CheckBatcher({ oneAccountPerBatch, send: resolve });
      for (const account of accounts) void batcher.add({ keys: [account], account, route: 'route', plan, cost: 1 });
    });
  }
  const shapeOf = (batches: readonly CheckBatch[]) =>
    batches.map(({ checks }) => checks.map(({ waiting }) => waiting.length));

  it.each([1, 3, 4, 5, 16, 17, 40, 127, 128, 129, 300])(
    'of %d accounts are cut as the Redis store cuts them',
    async (count) => {
      const accounts = Array.from({ length: count }, (_, i) => `acc_${i}`);
      expect(callSizes(count)).toEqual((await sent(accounts, false)).map(({ checks }) => checks.length));
    },
  );

  it.each([false, true])(
    'carry requests of one account as a number, on a cluster one account each: %s',
    async (isCluster) => {
      const names = ['a', 'b', 'a', 'c', 'd', 'e', 'a', 'f', 'b'];
      const requests = names.map((account) => ({ account, askedAt: 0 }));
      const shape = callsOf(requests, isCluster).map((checks) => checks.map((check) => check.requests.length));
      expect(shape).toEqual(shapeOf(await sent(names, isCluster)));
    },
  );
});

describe('a population', () => {
  const settings = { accounts: 1_000, exponent: 0.9, perSecond: 500, hotShare: 0.2, random: createRandom(3) };
  const population = createPopulation(settings);
  const ranks = Array.from({ length: settings.accounts }, (_, i) => i + 1);

  it('asks as often as its accounts together', () => {
    const all = [HOT, ...ranks].reduce((sum, account) => sum + population.rateOf(account), 0);
    expect(all * SECOND).toBeCloseTo(settings.perSecond, 6);
  });

  it('has a record for each account while its window runs', () => {
    const chance = (account: number) =>
      (population.rateOf(account) * SECOND) / (1 + population.rateOf(account) * SECOND);
    const exact = [HOT, ...ranks].reduce((sum, account) => sum + chance(account), 0);
    expect(population.activeIn(SECOND)).toBeCloseTo(exact, 6);
  });

  it('spreads over shards evenly, and an account stays on its own', () => {
    const counts = [0, 0, 0, 0, 0, 0, 0];
    for (let account = 1; account <= 70_000; account++)
      counts[shardOf(account, 7)] = (counts[shardOf(account, 7)] ?? 0) + 1;
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(400);
    expect(shardOf(10 ** 9, 7)).toBe(shardOf(10 ** 9, 7));
  });
});

describe('the shards that are needed', () => {
  const busy = { ...QUEUE, exponent: 0.5, gateways: 10 };
  const needed = (load: number, hotShare = 0) => {
    const { shards, slice } = shardsNeeded(
      (count: number) => ({ ...busy, shards: count, hotShare, perSecond: (load / SERVICE) * SECOND }),
      0.6,
      () => 50_000,
    );
    return { shards, ...utilisationOf(slice) };
  };

  it('are one where one is not too busy', () => {
    expect(needed(0.5).shards).toBe(1);
  });

  it('are so many that the busiest is not too busy, and no more than chance asks for', () => {
    const { shards, most } = needed(3);
    expect(most).toBeLessThanOrEqual(0.6);
    expect(shards).toBeGreaterThanOrEqual(5);
    expect(shards).toBeLessThanOrEqual(7);
  });

  it('end where one account is too much for any server', () => {
    const { shards, most } = needed(3, 0.5);
    expect(most).toBeGreaterThan(0.6);
    expect(shards).toBeLessThan(50);
  });
});
