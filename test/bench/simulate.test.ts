import { describe, expect, it } from 'vitest';
import { callSizes, callsOf } from '../../bench/model/calls.mjs';
import { createPopulation, HOT, shardOf } from '../../bench/model/population.mjs';
import { createRandom } from '../../bench/model/random.mjs';
import { simulate } from '../../bench/model/simulate.mjs';
import { shardsNeeded, utilisationOf } from '../../bench/model/sizing.mjs';
import type { Decision } from '../../src/core/decision.ts';
import { parseLimit } from '../../src/core/limit.ts';
import { createWindowSet } from '../../src/core/window-set.ts';
import { type CheckBatch, CheckBatcher } from '../../src/stores/shared/check-batcher.ts';

const SECOND = 1e6;
const SERVICE = 7;
const MANY = { max: Number.MAX_SAFE_INTEGER, micros: 1 };

/** One gateway and one server. Only the server takes time, and no request is rejected. */
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

/** Equal accounts for ten seconds: each sends three requests per second, and 60 per minute are allowed. */
const REJECTING = {
  ...QUEUE,
  accounts: 2_000,
  exponent: 1e-9,
  perSecond: 6_000,
  decisions: 60_000,
  window: { max: 60, micros: 60 * SECOND },
};

const share = (part: number, whole: number): number => part / whole;

describe('the queue of a server', () => {
  it.each([0.3, 0.6, 0.9])('is that of M/D/1 if every call takes the same time, at a load of %d', (load) => {
    const { shards } = simulate({ ...QUEUE, perSecond: (load / SERVICE) * SECOND });
    const { calls, waitMicros } = shards[0] as { calls: number; waitMicros: number };
    expect(waitMicros / calls / ((load * SERVICE) / (2 * (1 - load)))).toBeCloseTo(1, 1);
  });

  it.each([0.3, 0.6, 0.9])('is that of M/M/1 if calls take exponential times, at a load of %d', (load) => {
    const random = createRandom(2);
    const serviceOf = () => random.exponential(SERVICE);
    const { shards } = simulate({ ...QUEUE, perSecond: (load / SERVICE) * SECOND, serviceOf });
    const { calls, waitMicros } = shards[0] as { calls: number; waitMicros: number };
    expect(waitMicros / calls / ((load * SERVICE) / (1 - load))).toBeCloseTo(1, 1);
  });

  it('is as busy as rate times service time', () => {
    const { mean, most } = utilisationOf(simulate({ ...QUEUE, perSecond: 80_000 }));
    expect(mean).toBeCloseTo(0.56, 2);
    expect(most).toBe(mean);
  });
});

describe('a simulation', () => {
  const FLEET = {
    ...REJECTING,
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

  it('has inFlight requests in flight if each request follows a decision', () => {
    const slow = { ...QUEUE, inFlight: 64, decisions: 20_000, serviceOf: () => 0, oneWay: () => 100 };
    const { decisions, latency, endedMicros } = simulate(slow);
    expect(decisions).toBe(20_000);
    expect([latency.p50, latency.p999]).toEqual([200, 200]);
    // Little's law.
    expect((decisions / endedMicros) * (latency.p50 ?? 0)).toBeCloseTo(64, 0);
  });
});

describe('a slice shorter than a window', () => {
  // Windows are full long before they end, so each cycle of a window and a gap accepts the max.
  const gap = SECOND / 3;
  const accepted = 60 / ((60 * SECOND + gap) / gap);

  it('accepts as many requests as it would if it had gone on forever', () => {
    const result = simulate(REJECTING);
    expect(share(result.accepted, result.decisions) / accepted).toBeCloseTo(1, 1);
    expect(result.local).toBe(0);
  });

  it('accepts the same if gateways remember rejections, and calls the server as rarely as possible', () => {
    const gateways = 2;
    const result = simulate({ ...REJECTING, gateways, denialMicros: SECOND });
    expect(share(result.accepted, result.decisions) / accepted).toBeCloseTo(1, 1);
    // An account sends a request to a gateway every two gaps. One call to the server covers the requests of the next second.
    const withinASecond = SECOND / (gateways * gap);
    const rejected = result.decisions - result.accepted;
    expect(share(result.local, rejected)).toBeCloseTo(withinASecond / (1 + withinASecond), 1);
  });

  it('begins with the rejections that gateways would remember from before', () => {
    const gateways = 2;
    const accounts = 8_000;
    const many = { ...REJECTING, accounts, perSecond: 3 * accounts, decisions: 30 * accounts };
    const { decisions, accepted, local } = simulate({ ...many, gateways, denialMicros: 60 * SECOND });
    // Each gateway calls the server once per cycle of an account, and the slice has ten seconds.
    const asked = (accounts * gateways * 10 * SECOND) / (60 * SECOND + gap);
    expect((decisions - accepted - local) / asked).toBeCloseTo(1, 1);
  });

  it('accepts exactly the max of an account whose first window starts within it', () => {
    const result = simulate({ ...REJECTING, perSecond: 0.000_001, accounts: 1, inFlight: 200, decisions: 5_000 });
    expect(result.accepted).toBe(60);
  });
});

describe('calls', () => {
  const limit = parseLimit(['60/1m']);
  const windowSet = createWindowSet(limit, limit);

  /** The batches that the Redis store sends. */
  function sent(accounts: readonly string[], oneAccountPerBatch: boolean): Promise<readonly CheckBatch<Decision>[]> {
    return new Promise((resolve) => {
      const batcher = new CheckBatcher<Decision>({ oneAccountPerBatch, send: resolve });
      for (const account of accounts)
        void batcher.add({ keys: [account], account, route: 'route', windowSet, cost: 1 });
    });
  }
  const shapeOf = (batches: readonly CheckBatch<Decision>[]) =>
    batches.map(({ checks }) => checks.map(({ waiting }) => waiting.length));

  it.each([1, 3, 4, 5, 16, 17, 40, 127, 128, 129, 300])(
    'for %d accounts have the same sizes as those of the Redis store',
    async (count) => {
      const accounts = Array.from({ length: count }, (_, i) => `acc_${i}`);
      expect(callSizes(count)).toEqual((await sent(accounts, false)).map(({ checks }) => checks.length));
    },
  );

  it.each([false, true])(
    'have one check per account with a count, and one account per call on a cluster: isCluster %s',
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

  it('has the rate of all its accounts together', () => {
    const all = [HOT, ...ranks].reduce((sum, account) => sum + population.rateOf(account), 0);
    expect(all * SECOND).toBeCloseTo(settings.perSecond, 6);
  });

  it('has one record per account while the account’s window is open', () => {
    const chance = (account: number) =>
      (population.rateOf(account) * SECOND) / (1 + population.rateOf(account) * SECOND);
    const exact = [HOT, ...ranks].reduce((sum, account) => sum + chance(account), 0);
    expect(population.activeIn(SECOND)).toBeCloseTo(exact, 6);
  });

  it('spreads evenly over shards, and an account stays on its shard', () => {
    const counts = [0, 0, 0, 0, 0, 0, 0];
    for (let account = 1; account <= 70_000; account++)
      counts[shardOf(account, 7)] = (counts[shardOf(account, 7)] ?? 0) + 1;
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(400);
    expect(shardOf(10 ** 9, 7)).toBe(shardOf(10 ** 9, 7));
  });
});

describe('shardsNeeded', () => {
  const busy = { ...QUEUE, exponent: 0.5, gateways: 10 };
  const needed = (load: number, hotShare = 0) => {
    const { shards, slice } = shardsNeeded(
      (count: number) => ({ ...busy, shards: count, hotShare, perSecond: (load / SERVICE) * SECOND }),
      0.6,
      () => 50_000,
    );
    return { shards, ...utilisationOf(slice) };
  };

  it('is one if one server is not too busy', () => {
    expect(needed(0.5).shards).toBe(1);
  });

  it('is a number at which the busiest shard is not too busy, and not many more than the work needs', () => {
    const { shards, most } = needed(3);
    expect(most).toBeLessThanOrEqual(0.6);
    expect(shards).toBeGreaterThanOrEqual(5);
    expect(shards).toBeLessThanOrEqual(7);
  });

  it('stops if one account is too much for any server', () => {
    const { shards, most } = needed(3, 0.5);
    expect(most).toBeGreaterThan(0.6);
    expect(shards).toBeLessThan(50);
  });
});
