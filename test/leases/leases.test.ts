/** S32: one process with leases, on a store whose calls are counted. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, it } from 'vitest';
import { LEASE_CHANNEL } from '../../src/core/lease-channel.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import { createLimiter, type LimiterOptions } from '../../src/index.ts';
import { createLeasesWith } from '../../src/leases/create-leases.ts';
import { createLeases, createReceipts, type LeaseEvent, type LeaseOptions } from '../../src/limits/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFailover } from '../../src/stores/shared/failover.ts';
import { settled } from '../support/leases/fleet.ts';

const SUBJECT = { account: 'a', route: 'r' };

/** A limiter with leases on a memory store that is called as a server is, and a clock with timers. */
function start({
  leases: options = {},
  isSync = false,
  maxKeys = 100,
  ...more
}: Partial<Omit<LimiterOptions, 'leases'>> & { leases?: LeaseOptions; isSync?: boolean; maxKeys?: number } = {}) {
  let now = 1_000_000;
  let suspendedMs = 0;
  let timers: { at: number; call: () => void }[] = [];
  const clock = { now: () => now };
  const inner = createMemoryStore({ clock, maxKeys });
  const calls: string[] = [];
  const state: { fails: boolean; held: (() => void)[] | undefined } = { fails: false, held: undefined };
  const send =
    (name: string, call: (...args: never[]) => unknown) =>
    (...args: never[]) => {
      calls.push(name === 'lease' ? `lease ${args[4]}` : name);
      if (state.fails) {
        if (isSync) throw new Error('away');
        return Promise.reject(new Error('away'));
      }
      const result = call.apply(inner, args);
      if (isSync) return result;
      return state.held === undefined
        ? Promise.resolve(result)
        : new Promise((resolve) => state.held?.push(() => resolve(result)));
    };
  const names = ['consume', 'peek', 'settle', 'settleOnce', 'lease', 'charge', 'reset', 'block', 'unblock', 'blocked'];
  const store = {
    synchronous: isSync,
    ...Object.fromEntries(names.map((name) => [name, send(name, inner[name as 'consume'])])),
  } as unknown as LimitStore;
  const events: LeaseEvent[] = [];
  const leases = createLeasesWith(
    { onEvent: (event) => void events.push(event), ...options },
    {
      now: () => now - suspendedMs,
      after(ms, call) {
        const timer = { at: now - suspendedMs + ms, call };
        timers.push(timer);
        return () => {
          timers = timers.filter((other) => other !== timer);
        };
      },
    },
    clock,
  );
  const limiter = createLimiter({
    store,
    limits: { allMethods: ['1000/1m', '5000/1h'] },
    validate: false,
    leases,
    ...more,
  });
  const advance = async (ms: number, isSuspended = false): Promise<void> => {
    for (let left = ms; left > 0; left--) {
      now++;
      if (isSuspended) {
        suspendedMs++;
        continue;
      }
      const due = timers.filter(({ at }) => at <= now - suspendedMs);
      timers = timers.filter((timer) => !due.includes(timer));
      for (const { call } of due) call();
      if (due.length > 0) await settled();
    }
  };
  /** Requests until a lease is there. */
  const warmUp = async (count = 30, gapMs = 10): Promise<void> => {
    for (let i = 0; i < count; i++) {
      await limiter.consume(SUBJECT);
      await advance(gapMs);
    }
  };
  const windowSet = limiter.windowSet(SUBJECT);
  const counts = () => inner.peek('a', 'r', windowSet).map(({ max, remaining }) => max - remaining);
  return { limiter, leases, inner, store, calls, events, state, advance, warmUp, counts, timers: () => timers.length };
}

describe('S32: leases', () => {
  it('a pair that is seen less than once per lease is decided as without leases: one call per request, and nothing else', async () => {
    const { limiter, advance, calls, leases, counts } = start();
    for (let i = 0; i < 10; i++) {
      expect((await limiter.consume(SUBJECT)).leased).toBe(false);
      await advance(1_100);
    }
    expect(calls).toEqual(Array(10).fill('consume'));
    expect([leases.stats().leased, counts()]).toEqual([0, [10, 10]]);
    await advance(2_000);
    expect(leases.stats().pairs).toBe(0);
  });

  it('a busy pair is decided without calls, and with the numbers that the store would say', async () => {
    const { limiter, warmUp, calls, leases, events, inner, advance } = start();
    await warmUp(100);
    const before = calls.length;
    expect(before).toBeLessThan(20);
    const decision = await limiter.consume(SUBJECT);
    expect(calls.length).toBe(before);
    expect(decision).toMatchObject({
      accepted: true,
      leased: true,
      degraded: false,
      cost: 1,
      account: 'a',
      route: 'r',
    });
    expect(decision.shown).toMatchObject({ limit: 'all-methods', max: 5_000, remaining: 4_899, durationMs: 3_600_000 });
    expect(decision.trace.map(({ remaining, resetMs }) => [remaining, resetMs])).toEqual([
      [899, 59_000],
      [4_899, 3_599_000],
    ]);
    expect(decision.toJSON()).toMatchObject({ accepted: true, leased: true, shown: { remaining: 4_899 } });
    const { leased, used, givenBack, lost, held, decisions } = leases.stats();
    expect(leased).toBe(used + givenBack + lost + held);
    expect(decisions).toBeGreaterThan(80);
    // As many as 101 requests charged, and those that are held.
    expect(inner.peek('a', 'r', limiter.windowSet(SUBJECT))[1]?.remaining).toBe(4_899 - held);
    expect(events.filter(({ type }) => type === 'leased').reduce((sum, { units }) => sum + units, 0)).toBe(leased);
    await advance(1_000);
    expect(leases.stats()).toMatchObject({ held: 0, lost: 0 });
    expect(inner.peek('a', 'r', limiter.windowSet(SUBJECT))[1]?.remaining).toBe(4_899);
    expect(events.at(-2)).toMatchObject({ account: 'a', route: 'r' });
  });

  it('a busy pair never waits: the next lease is fetched in the background', async () => {
    const { limiter, warmUp, advance, calls } = start();
    await warmUp(150, 5);
    const leased: boolean[] = [];
    for (let i = 0; i < 800; i++) {
      leased.push((await limiter.consume(SUBJECT)).leased);
      await advance(5);
      if (i === 400) expect(calls.length).toBeLessThan(40);
    }
    expect(leased.filter((each) => !each)).toEqual([]);
  });

  it('the next leases of busy pairs are fetched together when theirs end, and the others give back', async () => {
    const { limiter, advance, calls, leases } = start();
    const accounts = ['a', 'b', 'c'];
    for (let i = 0; i < 40; i++) {
      for (const account of accounts) await limiter.consume({ account, route: 'r' });
      await advance(50);
    }
    calls.length = 0;
    const leased: boolean[] = [];
    for (let i = 0; i < 40; i++) {
      for (const account of accounts) leased.push((await limiter.consume({ account, route: 'r' })).leased);
      await advance(50);
    }
    expect(leased).not.toContain(false);
    expect(calls.filter((call) => call.startsWith('lease')).length).toBeLessThanOrEqual(12);
    // Nothing is held for longer than a lease after the last request.
    await advance(950);
    expect(leases.stats()).toMatchObject({ held: 0, lost: 0 });
  });

  it('the last units of a window are asked for one by one, and no request is admitted beyond it', async () => {
    const { limiter, calls, warmUp } = start({ limits: { allMethods: ['100/1m'] } });
    await warmUp(90, 1);
    calls.length = 0;
    const accepted: boolean[] = [];
    for (let i = 0; i < 15; i++) accepted.push((await limiter.consume(SUBJECT)).accepted);
    expect(accepted).toEqual([...Array(10).fill(true), ...Array(5).fill(false)]);
    expect(calls.every((call) => call === 'consume' || call === 'lease 1')).toBe(true);
  });

  it.each([false, true])(
    'a request that fits with the units of the lease is accepted (synchronous: %s)',
    async (isSync) => {
      const { limiter, warmUp, inner, leases, counts } = start({ isSync, limits: { allMethods: ['100/1m'] } });
      await warmUp(50);
      const { held } = leases.stats();
      expect(held).toBeGreaterThan(0);
      // Another process leaves so much that 10 fit only with what is held here.
      inner.consume('a', 'r', limiter.windowSet(SUBJECT), 40);
      expect((await limiter.consume({ ...SUBJECT, cost: 10 })).accepted).toBe(true);
      expect((await limiter.consume(SUBJECT)).accepted).toBe(false);
      expect([counts(), leases.stats().held]).toEqual([[100], 0]);
    },
  );

  it('consumeSync decides from a lease of a synchronous store', async () => {
    const { limiter, advance, calls, leases } = start({ isSync: true });
    for (let i = 0; i < 100; i++) {
      expect(limiter.consumeSync(SUBJECT).accepted).toBe(true);
      await advance(5);
    }
    expect([calls.length < 20, leases.stats().decisions > 80]).toEqual([true, true]);
    await limiter.close();
    expect(leases.stats().held).toBe(0);
  });

  it('close() gives everything back, also what a call brings that is under way', async () => {
    const { limiter, warmUp, counts, leases, state, timers } = start();
    await warmUp(50);
    state.held = [];
    const late = limiter.consume({ ...SUBJECT, cost: 40 });
    await settled();
    const closing = limiter.close();
    const release = async () => {
      for (let i = 0; i < 20; i++) {
        for (const go of state.held?.splice(0) ?? []) go();
        await settled();
      }
    };
    await release();
    await closing;
    expect((await late).accepted).toBe(true);
    expect(leases.stats()).toMatchObject({ held: 0, lost: 0 });
    expect([counts(), timers()]).toEqual([[90, 90], 0]);
  });

  it.each([
    ['a reset', async ({ limiter }: ReturnType<typeof start>) => limiter.reset({ account: 'a' }), [0, 0]],
    ['a reset of all', async ({ limiter }: ReturnType<typeof start>) => limiter.reset({}), [0, 0]],
    [
      'a block',
      async ({ limiter }: ReturnType<typeof start>) => limiter.block({ account: 'a' }, { forMs: 500 }),
      [50, 50],
    ],
    ['a charge', async ({ limiter }: ReturnType<typeof start>) => limiter.charge({ ...SUBJECT, cost: 7 }), [57, 57]],
  ])('%s gives the units of the account back at once', async (name, change, expected) => {
    const started = start();
    const { limiter, warmUp, counts, leases } = started;
    await warmUp(50);
    expect(leases.stats().held).toBeGreaterThan(0);
    await change(started);
    expect([counts(), leases.stats().held]).toEqual([expected, 0]);
    const next = await limiter.consume(SUBJECT);
    expect([next.leased, next.accepted]).toEqual([false, name !== 'a block']);
  });

  it('a call under way brings no lease past a block', async () => {
    const { limiter, warmUp, advance, state, leases, calls } = start();
    await warmUp(50);
    await advance(1_000);
    state.held = [];
    const asked = limiter.consume(SUBJECT);
    await settled();
    const [answer] = state.held.splice(0);
    expect(calls.at(-1)).toMatch(/^lease (?!1$)/);
    state.held = undefined;
    await limiter.block({ account: 'a' }, { forMs: 500 });
    // The store granted it before the block, and its answer comes afterwards.
    answer?.();
    expect((await asked).accepted).toBe(true);
    await settled();
    expect((await limiter.consume(SUBJECT)).blocked).toBeDefined();
    expect(leases.stats().held).toBe(0);
  });

  it('a block by another process ends every lease of the account, once this process sees it', async () => {
    const { limiter, warmUp, inner, leases, advance } = start();
    await warmUp(50);
    inner.block({ account: 'a' }, { forMs: 10_000 });
    expect((await limiter.consume(SUBJECT)).leased).toBe(true);
    const other = await limiter.consume({ account: 'a', route: 'other' });
    await settled();
    expect(other.blocked).toBeDefined();
    expect([(await limiter.consume(SUBJECT)).blocked?.forMs, leases.stats().held]).toEqual([10_000, 0]);
    await advance(1);
  });

  it('an adjusted limit ends the lease, and applies to the next request', async () => {
    const { limiter, warmUp, counts } = start();
    await warmUp(50);
    limiter.adjust({}, ['50/1m', '5000/1h']);
    expect((await limiter.consume(SUBJECT)).accepted).toBe(false);
    await settled();
    expect(counts()).toEqual([50, 50]);
  });

  it('what an adjusted limit ends goes back before the request is decided, also if the store answers in another order', async () => {
    const { limiter, warmUp, state, counts } = start();
    await warmUp(50);
    limiter.adjust({}, ['51/1m', '5000/1h']);
    state.held = [];
    const decided = limiter.consume(SUBJECT);
    await settled();
    expect(state.held.length).toBe(1);
    state.held.splice(0)[0]?.();
    state.held = undefined;
    expect([(await decided).accepted, counts()]).toEqual([true, [51, 51]]);
  });

  it('refunds and settlements go into the lease while it lasts, and else to the windows that were charged', async () => {
    const { limiter, warmUp, counts, calls, advance, leases } = start();
    await warmUp(50);
    const [first, second] = [await limiter.consume(SUBJECT), await limiter.consume({ ...SUBJECT, cost: 2 })];
    calls.length = 0;
    expect([await limiter.refund(first), await limiter.refund(first), await limiter.settle(second, 3)]).toEqual([
      true,
      false,
      true,
    ]);
    expect(calls).toEqual([]);
    const late = await limiter.consume({ ...SUBJECT, cost: 2 });
    await advance(1_000);
    expect(counts()).toEqual([55, 55]);
    expect([await limiter.settle(late, 5), counts(), await limiter.refund(late)]).toEqual([true, [58, 58], false]);
    const { leased, used, givenBack } = leases.stats();
    expect(used + givenBack).toBe(leased);
  });

  it.each([false, true])(
    'a cost that is raised by more than is left ends the lease (with a receipt: %s)',
    async (isReceipt) => {
      const receipts = createReceipts({ secret: 'a secret of thirty-two characters' });
      const { limiter, warmUp, counts, leases } = start({ limits: ['100/1m'], receipts });
      for (let i = 0; i < 50; i++) await warmUp(1);
      const decision = await limiter.consume(SUBJECT);
      expect(leases.stats().held).toBeGreaterThan(0);
      await limiter.settle(isReceipt ? decision.receipt : decision, 50);
      await settled();
      expect([counts(), leases.stats().held]).toEqual([[100], 0]);
      expect((await limiter.consume(SUBJECT)).accepted).toBe(false);
    },
  );

  it('a receipt of a leased decision is settled once, in the windows that were charged', async () => {
    const receipts = createReceipts({ secret: 'a secret of thirty-two characters' });
    const { limiter, warmUp, counts, advance } = start({ receipts });
    await warmUp(50);
    const decision = await limiter.consume({ ...SUBJECT, cost: 2 });
    const { receipt } = decision;
    expect([decision.leased, await limiter.refund(receipt), await limiter.refund(decision)]).toEqual([
      true,
      true,
      false,
    ]);
    await advance(1_000);
    expect(counts()).toEqual([50, 50]);
  });

  it('a suspended machine: the lease is over when the wall clock says so, and its units go back', async () => {
    const { limiter, warmUp, advance, counts, leases } = start();
    await warmUp(50);
    await advance(20_000, true);
    expect((await limiter.consume(SUBJECT)).leased).toBe(false);
    await advance(1_000);
    expect([counts(), leases.stats().held]).toEqual([[51, 51], 0]);
  });

  it('no lease outlives the first of its windows', async () => {
    const { limiter, advance, warmUp, counts } = start({ limits: { allMethods: ['500/400ms', '5000/1h'] } });
    await warmUp(39);
    expect((await limiter.consume(SUBJECT)).leased).toBe(true);
    await advance(9);
    expect((await limiter.consume(SUBJECT)).leased).toBe(false);
    await advance(1_000);
    expect(counts()).toEqual([0, 41]);
  });

  it('a store that is down: the lease is used until it ends; then its error, and no units are asked for until it answers', async () => {
    const { limiter, warmUp, state, calls, advance, events, leases, counts } = start();
    await warmUp(60);
    state.fails = true;
    expect((await limiter.consume(SUBJECT)).leased).toBe(true);
    await advance(1_100);
    await expect(limiter.consume(SUBJECT)).rejects.toThrow('away');
    calls.length = 0;
    for (let i = 0; i < 20; i++) await expect(limiter.consume(SUBJECT)).rejects.toThrow('away');
    expect(new Set(calls)).toEqual(new Set(['lease 1']));
    state.fails = false;
    await advance(200);
    // What could not be given back is given back once the store answers.
    await limiter.consume(SUBJECT);
    expect(leases.stats().held).toBe(0);
    expect(counts()).toEqual([62, 62]);
    // The first call that failed asked for a lease. Nothing else was lost.
    expect(events.filter(({ type }) => type === 'lost').length).toBe(1);
  });

  it('units that cannot be given back in time are lost, and said to be', async () => {
    const { warmUp, state, advance, events, leases } = start();
    await warmUp(60);
    const { held } = leases.stats();
    state.fails = true;
    await advance(12_500);
    expect(leases.stats()).toMatchObject({ held: 0, lost: held });
    expect(events.at(-1)).toMatchObject({ type: 'lost', account: 'a', route: 'r', units: held });
    expect(events.at(-1)?.error).toEqual(new Error('away'));
  });

  it('close() asks again for what could not be given back before', async () => {
    const { limiter, warmUp, advance, state, leases, counts } = start();
    await warmUp(60);
    state.fails = true;
    await advance(1_000);
    expect(leases.stats().held).toBeGreaterThan(0);
    state.fails = false;
    await limiter.close();
    expect([leases.stats().held, leases.stats().lost, counts()]).toEqual([0, 0, [60, 60]]);
  });

  it('units go back together, also if the store is far away', async () => {
    const { limiter, advance, state, leases } = start({ maxKeys: 1_000 });
    const accounts = Array.from({ length: 300 }, (_, i) => `a${i}`);
    for (let i = 0; i < 3; i++) for (const account of accounts) await limiter.consume({ account, route: 'r' });
    expect(leases.stats().held).toBeGreaterThanOrEqual(300);
    state.held = [];
    await advance(1_000);
    const sent: number[] = [];
    while (state.held.length > 0) {
      sent.push(state.held.length);
      await advance(80);
      for (const answer of state.held.splice(0)) answer();
      await settled();
    }
    expect(sent).toEqual([64, 236]);
    expect(leases.stats()).toMatchObject({ held: 0, lost: 0 });
  });

  it('what goes back to a store in this process needs no room for receipts', async () => {
    const receipts = createReceipts({ secret: 'a secret of thirty-two characters' });
    const { limiter, advance, leases } = start({ isSync: true, maxKeys: 1, receipts });
    for (let i = 0; i < 5; i++) {
      for (let j = 0; j < 10; j++) limiter.consumeSync(SUBJECT);
      await advance(1_000);
    }
    expect(leases.stats()).toMatchObject({ held: 0, lost: 0 });
    expect(leases.stats().givenBack).toBeGreaterThan(0);
    expect(await limiter.refund(limiter.consumeSync(SUBJECT).receipt)).toBe(true);
  });

  it('close() while the store is down: what cannot be given back is lost, and the limiter closes', async () => {
    const { limiter, warmUp, state, leases, events } = start();
    await warmUp(60);
    const { held } = leases.stats();
    state.fails = true;
    await limiter.close();
    expect(leases.stats()).toMatchObject({ held: 0, lost: held });
    expect(events.at(-1)).toMatchObject({ type: 'lost', units: held, error: new Error('away') });
  });

  it('a decision of the failure policy brings no lease', async () => {
    const failover = createFailover('local');
    const { warmUp, limiter, store, leases, advance } = start();
    await warmUp(60);
    await advance(1_000);
    const { lease } = store as Required<LimitStore>;
    Object.assign(store, {
      lease: async (...[account, route, windowSet, cost]: Parameters<typeof lease>) => ({
        decision: failover.decide(account, route, windowSet, cost, new Error('away')),
        granted: 1,
      }),
    });
    // The decorated store was made before, so this is a limiter of its own.
    const other = createLimiter({
      store: { ...store },
      limits: { allMethods: ['1000/1m'] },
      validate: false,
      leases: createLeases(),
    });
    for (let i = 0; i < 20; i++) expect((await other.consume(SUBJECT)).leased).toBe(false);
    await other.close();
    await limiter.close();
    expect(leases.stats().held).toBe(0);
  });

  it('more pairs than there is room for are decided without leases, until others are forgotten', async () => {
    const { limiter, leases, calls, advance } = start({ leases: { maxPairs: 2 } });
    for (let i = 0; i < 40; i++) for (const account of ['a', 'b', 'c']) await limiter.consume({ account, route: 'r' });
    expect(leases.stats().pairs).toBe(2);
    expect(calls.filter((call) => call === 'consume').length).toBeGreaterThanOrEqual(40);
    await advance(2_000);
    expect(leases.stats()).toMatchObject({ pairs: 0, held: 0 });
  });

  it('a request without windows is not watched', async () => {
    const { limiter, leases, calls } = start({ limits: { unlimited: true } });
    for (let i = 0; i < 10; i++) expect((await limiter.consume(SUBJECT)).accepted).toBe(true);
    expect([calls, leases.stats().pairs]).toEqual([Array(10).fill('consume'), 0]);
  });

  it('publishes its events, and a listener that throws changes nothing', async () => {
    const published: LeaseEvent[] = [];
    const onMessage = (event: unknown) => void published.push(event as LeaseEvent);
    const logged: string[] = [];
    subscribe(LEASE_CHANNEL, onMessage);
    try {
      const { warmUp } = start({
        leases: {
          onEvent: () => {
            throw new Error('of the listener');
          },
          logger: (message) => void logged.push(message),
        },
      });
      await warmUp(20);
    } finally {
      unsubscribe(LEASE_CHANNEL, onMessage);
    }
    expect(published.map(({ type }) => type)).toContain('leased');
    expect(logged.length).toBe(published.length);
    expect(logged[0]).toContain('onEvent failed');
  });

  it.each<[unknown, RegExp]>([
    [{ leaseMs: 9 }, /^leaseMs: must be an integer from 10 to 60000/],
    [{ leaseMs: 60_001 }, /^leaseMs/],
    [{ maxPairs: 0 }, /^maxPairs/],
    [{ onEvent: 1 }, /^onEvent: must be a function/],
    [{ logger: 'x' }, /^logger/],
    [{ leasems: 1 }, /^options\.leasems: unknown option \(expected leaseMs, maxPairs, onEvent or logger\)/],
  ])('refuses the options %o', (options, message) => {
    expect(() => createLeases(options as LeaseOptions)).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: expect.stringMatching(message) }),
    );
  });

  it('refuses what is no leases, and a store that cannot lease', () => {
    const limits = { allMethods: ['10/1m'] };
    expect(() => createLimiter({ limits, leases: true as never })).toThrow(
      /^leases: must have addTo\(\), as createLeases\(\) does/,
    );
    const store = { ...createMemoryStore(), lease: undefined } as unknown as LimitStore;
    expect(() => createLimiter({ store, limits, leases: createLeases() })).toThrow(/^store: must have /);
  });
});
