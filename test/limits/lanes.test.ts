import { describe, expect, it } from 'vitest';
import type { MisuseWarning } from '../../src/core/misuse.ts';
import { createWindowSet } from '../../src/core/window-set.ts';
import {
  createLimiter,
  isHeadgateError,
  type LimiterOptions,
  type LimitRequest,
  type Limits,
} from '../../src/index.ts';
import { createLeases, createReceipts, type LayeredLimits, type WindowSetSource } from '../../src/limits/index.ts';
import { createMemoryAdjustments } from '../../src/memory.ts';
import { createSharedLimits } from '../../src/shared-limits/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFailover } from '../../src/stores/shared/failover.ts';
import { createJobWorker } from '../../src/waiting/index.ts';
import { createFakeTimers, settled } from '../support/fake-timers.ts';

const SUBJECT = { account: 'a', route: 'r' };
const BULK = { ...SUBJECT, lane: 'bulk' };
const LIMITS = { allMethods: ['10/1m', '100/1d'], lanes: { bulk: 0.9, batch: 0.25 } };

function limiterOf(limits: LimiterOptions['limits'] = LIMITS) {
  const clock = createFakeTimers(0);
  const warnings: MisuseWarning[] = [];
  const logger = (_: string, warning: unknown): void => void warnings.push(warning as MisuseWarning);
  const limiter = createLimiter({ store: createMemoryStore({ clock }), limits, logger });
  const accepted = (request: Partial<LimitRequest> = {}, times = 20): number =>
    Array.from({ length: times }, () => limiter.consumeSync({ ...SUBJECT, ...request })).filter((each) => each.accepted)
      .length;
  const maxes = (subject: Partial<LimitRequest>) =>
    limiter.windowSet({ ...SUBJECT, ...subject }).windows.map(({ max }) => max);
  return { clock, limiter, accepted, maxes, codes: () => warnings.map(({ code }) => code) };
}

describe('S28: a lane', () => {
  it('leaves its rest of each window to requests without a lane, and is counted in the same windows', () => {
    const { accepted } = limiterOf();
    expect(accepted({ lane: 'batch' })).toBe(2);
    expect(accepted({ lane: 'bulk' })).toBe(7);
    expect(accepted()).toBe(1);
    expect(accepted({ lane: 'bulk' })).toBe(0);
  });

  it('reserves nothing for itself: other requests may use all of a window', () => {
    const { accepted } = limiterOf();
    expect(accepted()).toBe(10);
    expect(accepted({ lane: 'bulk' })).toBe(0);
  });

  it('sees its own max and what it may still use, also in a rejection, a peek and the usage', async () => {
    const { limiter } = limiterOf();
    limiter.consumeSync({ ...SUBJECT, cost: 8 });
    expect(limiter.consumeSync(BULK)).toMatchObject({
      accepted: true,
      lane: 'bulk',
      trace: [
        { max: 9, remaining: 0 },
        { max: 90, remaining: 81 },
      ],
    });
    const rejected = limiter.consumeSync(BULK);
    expect(rejected).toMatchObject({ accepted: false, impossible: false, shown: { max: 9, remaining: 0 } });
    expect(JSON.parse(JSON.stringify(rejected))).toMatchObject({ lane: 'bulk' });
    expect(await limiter.peek(BULK)).toMatchObject([
      { max: 9, remaining: 0 },
      { max: 90, remaining: 81 },
    ]);
    expect(await limiter.peek(SUBJECT)).toMatchObject([
      { max: 10, remaining: 1 },
      { max: 100, remaining: 91 },
    ]);
    const usage = await limiter.usage({ account: 'a', lane: 'bulk', routes: ['r'] });
    expect(usage.routes).toMatchObject([{ windows: [{ max: 9 }, { max: 90 }] }]);
    expect(limiter.consumeSync(SUBJECT)).not.toHaveProperty('lane', 'bulk');
  });

  it('S11: a cost above the share can never fit', () => {
    const { limiter } = limiterOf();
    expect(limiter.consumeSync({ ...BULK, cost: 10 })).toMatchObject({ accepted: false, impossible: true });
    expect(limiter.consumeSync({ ...SUBJECT, cost: 10 }).accepted).toBe(true);
  });

  it('S13: settling and receipts follow the rules of any charge', async () => {
    const clock = createFakeTimers(0);
    const receipts = createReceipts({ secret: 'x'.repeat(32) });
    const limiter = createLimiter({ store: createMemoryStore({ clock }), limits: LIMITS, receipts });
    const { receipt } = limiter.consumeSync({ ...BULK, cost: 9 });
    expect(await limiter.settle(receipt, 3)).toBe(true);
    expect((await limiter.peek(SUBJECT))[0]).toMatchObject({ remaining: 7 });
    expect(await limiter.settle(limiter.consumeSync(BULK), 20)).toBe(true);
    expect((await limiter.peek(BULK))[0]).toMatchObject({ remaining: 0 });
  });

  it('S35: a charge shows the windows of the lane', async () => {
    const { limiter } = limiterOf();
    expect(await limiter.charge({ ...BULK, cost: 4 })).toMatchObject([{ remaining: 5 }, { remaining: 86 }]);
  });
});

describe('S28: the lanes of limits', () => {
  it('apply to the limits of every layer, and to limits that are declared with a route', () => {
    const limits: LayeredLimits = {
      default: { allMethods: ['10/1m'], routes: { r: ['4/1s'] } },
      plans: { pro: { allMethods: ['100/1m'] } },
      accounts: { vip: { routes: { r: ['1000/1s'] } } },
      lanes: { half: 0.5 },
    };
    const { maxes } = limiterOf(limits);
    expect(maxes({ lane: 'half' })).toEqual([2, 5]);
    expect(maxes({ lane: 'half', plan: 'pro' })).toEqual([2, 50]);
    expect(maxes({ lane: 'half', plan: 'pro', account: 'vip' })).toEqual([500, 50]);
    expect(maxes({ lane: 'half', route: 's', limits: ['9/1s'] })).toEqual([4, 5]);
  });

  it('stand beside a list, and S10: follow an adjustment at once', () => {
    const { limiter, maxes, accepted } = limiterOf({ default: ['10/1m'], lanes: { bulk: 0.5 } });
    expect(accepted({ lane: 'bulk', route: undefined })).toBe(5);
    limiter.adjust({}, ['20/1m']);
    expect(maxes({ lane: 'bulk' })).toEqual([10]);
    expect(accepted({ lane: 'bulk', route: undefined })).toBe(5);
  });

  it('S31: apply to the limits of groups, so bulk work of one account leaves room in the window of all', () => {
    const limits: Limits = { default: ['8/1m'], groups: { customer: ['10/1m'] }, lanes: { bulk: 0.5 } };
    const { limiter } = limiterOf(limits);
    const decide = (account: string, lane?: string) =>
      limiter.consumeSync({ account, lane, groups: { customer: 'cus_1' } });
    const bulk = ['a', 'a', 'a', 'b', 'b', 'b', 'b'].map((account) => decide(account, 'bulk'));
    expect(bulk.map(({ accepted }) => accepted)).toEqual([true, true, true, true, true, false, false]);
    expect(bulk.at(-1)).toMatchObject({ lane: 'bulk', rejectedBy: 'customer', shown: { max: 5, remaining: 0 } });
    const person = decide('b');
    expect(person.accepted).toBe(true);
    expect(person.lane).toBeUndefined();
    expect(person.trace).toMatchObject([
      { max: 8, remaining: 5 },
      { max: 10, remaining: 4 },
    ]);
  });

  it('may come from a function', async () => {
    const { limiter } = limiterOf(async ({ account }) => ({
      allMethods: ['10/1m'],
      ...(account === 'a' && { lanes: { bulk: 0.5 } }),
    }));
    expect((await limiter.consume(BULK)).shown?.max).toBe(5);
    await expect(limiter.consume({ ...BULK, account: 'b' })).rejects.toMatchObject({ code: 'unknown_lane' });
  });

  it('are rounded down, exactly', () => {
    const { maxes } = limiterOf({ allMethods: ['100/1m', '1000000/1d'], lanes: { odd: 0.29, tiny: 1e-6, all: 1 } });
    expect([maxes({ lane: 'odd' }), maxes({ lane: 'tiny' }), maxes({ lane: 'all' })]).toEqual([
      [29, 290_000],
      [0, 1],
      [100, 1_000_000],
    ]);
  });

  it.each<[string, unknown, string]>([
    ['a share of 0', { allMethods: ['9/1m'], lanes: { bulk: 0 } }, 'limits.lanes["bulk"]: must be a number above 0'],
    [
      'a share above 1',
      { allMethods: ['9/1m'], lanes: { bulk: 90 } },
      'limits.lanes["bulk"]: must be a number above 0',
    ],
    ['a text', { allMethods: ['9/1m'], lanes: { bulk: '90%' } }, 'limits.lanes["bulk"]: must be a number above 0'],
    ['a list', { allMethods: ['9/1m'], lanes: ['bulk'] }, 'limits.lanes: must be a plain object'],
    [
      'a lane in the default layer',
      { default: { allMethods: ['9/1m'], lanes: {} } },
      'limits.default.lanes: must be beside',
    ],
    [
      'a lane in a plan',
      { default: ['9/1m'], plans: { pro: { allMethods: ['9/1m'], lanes: { bulk: 1 } } } },
      'limits.plans["pro"].lanes: must be beside default',
    ],
  ])('refuse %s', (_, limits, message) => {
    expect(() => limiterOf(limits as never)).toThrow(message);
  });

  it.each(['bulky', '__proto__', ''])('an unknown lane is an error, and charges nothing: "%s"', async (lane) => {
    const { limiter } = limiterOf();
    const error = await limiter.consume({ ...SUBJECT, lane }).catch((thrown: unknown) => thrown);
    expect(isHeadgateError(error, 'unknown_lane')).toBe(true);
    expect((error as Error).message).toBe(`unknown lane "${lane}": limits.lanes has "bulk", "batch"`);
    await expect(limiter.peek({ ...SUBJECT, lane })).rejects.toMatchObject({ code: 'unknown_lane' });
    await expect(limiter.usage({ account: 'a', lane })).rejects.toMatchObject({ code: 'unknown_lane' });
    expect((await limiter.peek(SUBJECT))[0]).toMatchObject({ remaining: 10 });
  });

  it('a lane that is no string is an error', () => {
    const { limiter } = limiterOf();
    expect(() => limiter.consumeSync({ ...SUBJECT, lane: 5 as never })).toThrow('lane must be a string');
  });

  it('a source of window sets that ignores lanes is an error, because its request could use the reserved rest', () => {
    const windowSet = createWindowSet([], [{ max: 9, durationMs: 60_000 }]);
    const limits: WindowSetSource = { windowSet: () => windowSet };
    const limiter = createLimiter({ limits });
    expect(limiter.consumeSync(SUBJECT).accepted).toBe(true);
    expect(() => limiter.consumeSync(BULK)).toThrow('unknown lane "bulk": limits.lanes has none');
  });

  it('shared limits have them, and no adjustment changes them', async () => {
    const limits = createSharedLimits({ base: LIMITS, adjustments: createMemoryAdjustments() });
    await limits.put({ account: 'a' }, ['40/1m'], { by: 'test', confirm: true });
    const limiter = createLimiter({ limits });
    expect(limits.lanes).toEqual(['bulk', 'batch']);
    expect(limiter.windowSet(BULK).windows).toMatchObject([{ max: 36 }]);
    await limits.close();
  });

  it('S20: equal limits give the same window set object, because stores cache by it', () => {
    const { limiter } = limiterOf();
    expect(limiter.windowSet(BULK)).toBe(limiter.windowSet({ ...BULK, account: 'b', route: 's' }));
    expect(limiter.windowSet(BULK)).not.toBe(limiter.windowSet({ ...BULK, lane: 'batch' }));
  });
});

describe('S28: elsewhere', () => {
  it('S32: each lane has leases of its own, and none takes units of another', async () => {
    const timers = createFakeTimers(0);
    const leases = createLeases();
    const store = createMemoryStore({ clock: timers, maxKeys: 10 });
    const limits = { allMethods: ['1000/1h'], lanes: { bulk: 0.5 } };
    const limiter = createLimiter({ store, limits, leases });
    let bulk = 0;
    for (let i = 0; i < 400; i++) {
      limiter.consumeSync(SUBJECT);
      if (limiter.consumeSync(BULK).accepted) bulk++;
    }
    const { decisions, pairs } = leases.stats();
    // If each request of another lane gave the lease back, hardly any decision would come from one.
    expect({ pairs, isLeased: decisions > 300 }).toEqual({ pairs: 2, isLeased: true });
    expect(bulk).toBeLessThanOrEqual(500);
    while (limiter.consumeSync(BULK).accepted) bulk++;
    await limiter.reset({ account: 'other' });
    let others = 0;
    while (limiter.consumeSync(SUBJECT).accepted) others++;
    expect(others + 400 + bulk).toBe(1_000);
    await limiter.close();
  });

  it('jobs of a lane that is used up do not stop other jobs of the account, nor fill the queue', async () => {
    const timers = createFakeTimers(0);
    const limiter = createLimiter({ store: createMemoryStore({ clock: timers }), limits: LIMITS });
    const worker = createJobWorker(limiter, { timers, maxQueue: 30 });
    const log: string[] = [];
    const acquire = (name: string, lane?: string) =>
      worker.acquire({ ...SUBJECT, lane }).then(
        () => log.push(`${timers.now()} ${name}`),
        (error) => log.push(`${timers.now()} ${name} ${error.code}`),
      );
    for (let i = 0; i < 30; i++) void acquire('bulk', 'bulk');
    await settled();
    void acquire('person');
    await timers.advance(60_000);
    const of = (name: string) => log.filter((each) => each === name).length;
    // The other half of the queue is for others.
    expect(of('0 bulk queue_full')).toBe(15);
    expect([of('0 bulk'), of('0 person'), of('60000 bulk')]).toEqual([9, 1, 6]);
    await worker.close();
  });

  it('S17: while the store is away, a lane has its share of the local share', () => {
    const failover = createFailover({ local: { share: 0.5 } });
    const { limiter } = limiterOf();
    const decide = () => failover.decide('a', 'r', limiter.windowSet(BULK), 1, undefined);
    const decisions = Array.from({ length: 6 }, decide);
    expect(decisions.map(({ accepted }) => accepted)).toEqual([true, true, true, true, false, false]);
    expect(decisions[0]).toMatchObject({ degraded: true, lane: 'bulk' });
  });

  it('HG_LANE_NEVER_SEEN is logged after 1,000 decisions without a lane', () => {
    const limits = { ...LIMITS, allMethods: ['1000000/1m'] };
    const { accepted, codes } = limiterOf(limits);
    accepted({}, 999);
    expect(codes()).toEqual([]);
    accepted({}, 1_000);
    expect(codes()).toEqual(['HG_LANE_NEVER_SEEN']);
    const other = limiterOf(limits);
    other.limiter.consumeSync(BULK);
    other.accepted({}, 1_000);
    expect(other.codes()).toEqual([]);
  });

  it('HG_LANE_WITHOUT_ROOM is logged at the start if a share of a max is 0, and not if the max itself is 0', () => {
    expect(limiterOf({ allMethods: ['1/1s', '90/1m'], lanes: { bulk: 0.9 } }).codes()).toEqual([
      'HG_LANE_WITHOUT_ROOM',
    ]);
    expect(limiterOf({ allMethods: ['0/1s', '90/1m'], lanes: { bulk: 0.9 } }).codes()).toEqual([]);
  });
});
