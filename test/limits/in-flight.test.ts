import { describe, expect, it } from 'vitest';
import { createLimiter, type Decision, type LimiterOptions } from '../../src/index.ts';
import { createReceipts, groupAccount } from '../../src/limits/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeTimers } from '../support/fake-timers.ts';

const SUBJECT = { account: 'a', route: 'r' };

function limiterOf(limits: LimiterOptions['limits'], options: Partial<LimiterOptions> = {}) {
  const timers = createFakeTimers(1_000_000);
  const limiter = createLimiter({ store: createMemoryStore({ clock: timers }), limits, validate: false, ...options });
  const ask = (request: object = {}): Decision => limiter.consumeSync({ ...SUBJECT, ...request });
  const remaining = async (subject: object = {}) =>
    (await limiter.peek({ ...SUBJECT, ...subject })).map((window) => window.remaining);
  return { timers, limiter, ask, remaining };
}

describe('limits with inFlight (S29)', () => {
  it('S29: at most so many requests run at the same time, of an account and of a route', async () => {
    const { limiter, ask } = limiterOf({
      allMethods: { windows: ['600/1m'], inFlight: 3 },
      routes: { r: { windows: ['60/1m'], inFlight: 2 } },
    });
    const [one, two, three, other, last] = [ask(), ask(), ask(), ask({ route: 's' }), ask({ route: 's' })];
    expect([one, two, three, other, last].map(({ accepted, inFlight }) => [accepted, inFlight])).toEqual([
      [true, { running: 1, max: 2 }],
      [true, { running: 2, max: 2 }],
      [false, { running: 2, max: 2 }],
      [true, { running: 3, max: 3 }],
      [false, { running: 3, max: 3 }],
    ]);
    expect(ask({ account: 'b' }).accepted).toBe(true);
    const counts = [SUBJECT, { account: 'a', route: 's' }, { account: 'c', route: 'r' }].map((of) =>
      limiter.inFlight(of),
    );
    expect(await Promise.all(counts)).toEqual([
      { running: 2, max: 2 },
      { running: 3, max: 3 },
      { running: 0, max: 2 },
    ]);
    expect([await limiter.release(one), await limiter.release(one), await limiter.release(three)]).toEqual([
      true,
      false,
      false,
    ]);
    expect([ask().accepted, ask().accepted]).toEqual([true, false]);
  });

  it('S29: a rejection charges no window, shows none and names its limit; a window that rejects takes no slot', async () => {
    const { timers, ask, remaining, limiter } = limiterOf({ allMethods: { windows: ['3/1m'], inFlight: 2 } });
    const held = [ask(), ask()];
    timers.advance(10);
    const rejected = ask();
    const { accepted, rejectedBy, shown, impossible, blocked, inFlight, trace } = rejected;
    expect({ accepted, rejectedBy, shown, impossible, blocked, inFlight }).toEqual({
      accepted: false,
      rejectedBy: 'account',
      shown: undefined,
      impossible: false,
      blocked: undefined,
      inFlight: { running: 2, max: 2 },
    });
    expect(trace.map((window) => window.remaining)).toEqual([1]);
    expect(JSON.parse(JSON.stringify(rejected))).toMatchObject({ inFlight: { running: 2, max: 2 } });
    expect(await remaining()).toEqual([1]);
    await limiter.release(held[0] as Decision);
    expect([ask({ cost: 2 }).inFlight, await remaining()]).toEqual([undefined, [1]]);
    expect([ask().accepted, ask().shown?.remaining]).toEqual([true, 0]);
    expect(await remaining()).toEqual([0]);
  });

  it('S29: bounds requests without any window; a block still rejects them', async () => {
    const { limiter, ask, timers } = limiterOf({ allMethods: { inFlight: 1 } });
    const one = ask();
    expect([one.accepted, one.shown, ask().accepted]).toEqual([true, undefined, false]);
    await limiter.release(one);
    await limiter.block({ account: 'a' }, { forMs: 1_000, reason: 'pause' });
    expect([ask().blocked, ask().inFlight]).toEqual([{ forMs: 1_000, reason: 'pause' }, undefined]);
    await timers.advance(1_000);
    expect([ask().accepted, ask().accepted]).toEqual([true, false]);
  });

  it('S29: settling moves windows and no slot; a refund keeps the request in flight', async () => {
    const { limiter, ask, remaining } = limiterOf(
      { allMethods: { windows: ['9/1m'], inFlight: 1 } },
      { receipts: createReceipts({ secret: 'x'.repeat(32) }) },
    );
    const one = ask({ cost: 3 });
    expect([await limiter.settle(one, 5), await remaining(), ask().accepted]).toEqual([true, [4], false]);
    expect(await limiter.release(one)).toBe(true);
    const two = ask();
    expect([await limiter.refund(two.receipt), await remaining(), ask().accepted]).toEqual([true, [4], false]);
  });

  it('S29: each layer has its own bound, inherits another one, or removes it', async () => {
    const { ask, limiter } = limiterOf({
      default: { allMethods: { windows: ['60/1m'], inFlight: 1 }, routes: { r: { windows: ['50/1m'], inFlight: 1 } } },
      plans: {
        pro: { allMethods: { inFlight: 3 }, routes: { r: { inFlight: false } } },
        free: { allMethods: ['6/1m'] },
      },
      accounts: { b: { allMethods: { inFlight: false }, routes: { r: { inFlight: false } } } },
    });
    const windowsOf = (subject: object): unknown => {
      const { windows, inFlight } = limiter.windowSet({ ...SUBJECT, ...subject });
      return [windows.map(({ max }) => max), inFlight];
    };
    expect(windowsOf({})).toEqual([[50, 60], { route: 1, allMethods: 1 }]);
    expect(windowsOf({ plan: 'pro' })).toEqual([[50, 60], { route: undefined, allMethods: 3 }]);
    expect(windowsOf({ plan: 'free' })).toEqual([[50, 6], { route: 1, allMethods: 1 }]);
    expect(windowsOf({ account: 'b' })).toEqual([[50, 60], undefined]);
    // An adjustment changes windows and no bound.
    limiter.adjust({}, ['7/1m']);
    limiter.adjust({ route: 'r' }, []);
    expect(windowsOf({})).toEqual([[7], { route: 1, allMethods: 1 }]);
    expect([ask({ plan: 'pro' }), ask({ plan: 'pro' }), ask()].map(({ accepted }) => accepted)).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('S29: a group has a bound of its own; what another part rejects holds nothing', async () => {
    const { ask, limiter } = limiterOf({
      allMethods: { windows: ['60/1m'], inFlight: 2 },
      groups: { customer: { allMethods: { windows: ['100/1m'], inFlight: 3 } } },
    });
    const groups = { customer: 'c' };
    const held = [ask({ groups }), ask({ groups }), ask({ groups, account: 'b' })];
    expect(held.map(({ accepted }) => accepted)).toEqual([true, true, true]);
    const rejected = ask({ groups, account: 'b' });
    expect([rejected.rejectedBy, rejected.inFlight]).toEqual(['customer', { running: 3, max: 3 }]);
    expect((await limiter.peek({ ...SUBJECT, account: groupAccount('customer', 'c') }))[0]?.remaining).toBe(97);
    await limiter.release(held[0] as Decision);
    // The slot in the account was given back with the rejection.
    expect([ask({ account: 'b' }).accepted, ask({ account: 'b' }).accepted]).toEqual([true, false]);
    expect(ask({ groups }).accepted).toBe(true);
  });

  it('S29: using gives the slot back at the end of its scope', async () => {
    const { ask } = limiterOf({ allMethods: { inFlight: 1 } });
    {
      const decision = ask();
      expect([decision.accepted, ask().accepted]).toEqual([true, false]);
      decision[Symbol.dispose]();
    }
    const decision = ask();
    expect(decision.accepted).toBe(true);
    await decision[Symbol.asyncDispose]();
    expect(ask().accepted).toBe(true);
    // Also of a decision without a slot.
    ask()[Symbol.dispose]();
  });

  it('S29: a program that never releases a request is warned, once', async () => {
    const warned: string[] = [];
    const logger = (_: string, warning: unknown): void => void warned.push((warning as { code: string }).code);
    const limits = { allMethods: { windows: ['1000/1m'], inFlight: 2 } };
    const { ask } = limiterOf(limits, { validate: true, logger });
    for (let i = 0; i < 11; i++) ask({ account: 'b' }).accepted;
    expect(warned).toEqual([]);
    for (let i = 0; i < 20; i++) ask({ account: 'b' }).accepted;
    expect(warned).toEqual(['HG_NEVER_RELEASED']);
    const other = limiterOf(limits, { validate: true, logger });
    await other.limiter.release(other.ask());
    for (let i = 0; i < 40; i++) other.ask({ account: 'b' }).accepted;
    expect(warned).toEqual(['HG_NEVER_RELEASED']);
  });

  it('S29: mistakes show at the start', async () => {
    const wrong = (limits: unknown, message: string | RegExp): void =>
      expect(() => createLimiter({ limits } as never)).toThrow(message);
    wrong(
      { allMethods: { inFlight: 0 } },
      'limits.allMethods.inFlight: must be an integer from 1 to 1000000, or false',
    );
    wrong({ allMethods: { inFlight: '5' } }, 'limits.allMethods.inFlight: must be an integer');
    wrong({ allMethods: { inFlight: false } }, 'must have a window');
    wrong({ allMethods: { inFlight: 1, scope: 'account' } }, 'limits.allMethods.scope: needs windows');
    wrong({ routes: { r: { inflight: 1 } } }, 'limits.routes["r"].inflight: unknown option');
    wrong({ routes: { r: {} } }, 'limits.routes["r"].windows: a limit is an array');
    wrong({ allMethods: { inFlight: 1 }, unlimited: true }, 'limits.unlimited: must not be given beside inFlight');
    const store = Object.assign(createMemoryStore(), { holdSlot: undefined as never });
    expect(() => createLimiter({ store, limits: { allMethods: { inFlight: 1 } } })).toThrow(
      'store: must have holdSlot()',
    );
    const { limiter } = limiterOf(['1/1m']);
    await expect(limiter.release('x' as never)).rejects.toThrow('decision: must be what consume() returned');
    expect(await limiter.release(await limiter.consume(SUBJECT))).toBe(false);
  });
});
