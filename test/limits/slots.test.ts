import { describe, expect, it } from 'vitest';
import type { InFlightEvent } from '../../src/core/in-flight-channel.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import { type HeldSlot, Slots } from '../../src/limits/slots.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeTimers, settled } from '../support/fake-timers.ts';

const MOST = { allMethods: 2 };
const LEASE_MS = 60_000;

/** Two processes on one store behind a network that can fail. */
function setUp(options: { maxRunMs?: number } = {}) {
  const timers = createFakeTimers(1_000_000);
  const memory = createMemoryStore({ clock: timers });
  const network = { fails: false, holds: 0, releases: 0 };
  const reach = async <Result>(call: () => Result): Promise<Result> => {
    if (network.fails) throw new Error('away');
    return call();
  };
  const store = {
    ...memory,
    synchronous: false,
    holdSlot(slot, leaseMs) {
      network.holds++;
      return reach(() => memory.holdSlot(slot, leaseMs));
    },
    releaseSlot(slot) {
      network.releases++;
      return reach(() => memory.releaseSlot(slot));
    },
  } as LimitStore;
  const events: string[] = [];
  const onEvent = ({ type, account }: InFlightEvent): void => void events.push(`${type} ${account}`);
  const slots = new Slots(store, { onEvent, ...options }, false, timers);
  const other = new Slots(store, {}, false, timers);
  const take = async (of: Slots = slots): Promise<HeldSlot | undefined> => (await of.take('a', 'r', MOST)).slot;
  const running = async (): Promise<unknown> => {
    const count = memory.holdSlot({ account: 'a', route: 'r', token: '-', most: { allMethods: 0 } }, 1);
    return count.running.allMethods;
  };
  return { timers, memory, network, events, slots, other, take, running };
}

describe('slots of a process (S29)', () => {
  it('S29: are renewed while their requests run, by few calls, and given back once', async () => {
    const { timers, network, slots, take, running, other } = setUp();
    const [one, two] = [await take(), await take()];
    expect([one, two, await take(), slots.size]).toEqual([expect.anything(), expect.anything(), undefined, 2]);
    await timers.advance(10 * LEASE_MS);
    expect([await running(), await take(other)]).toEqual([2, undefined]);
    expect(network.holds).toBe(4 + 2 * 30);
    expect([await one?.release(), await one?.release(), slots.size, network.releases]).toEqual([true, false, 1, 1]);
    expect(await take(other)).toBeDefined();
    await two?.release();
    await timers.advance(LEASE_MS);
    expect([slots.size, timers.waiting]).toEqual([0, 1]);
  });

  it('S29: tell who waits that an account has room again', async () => {
    const { slots, take } = setUp();
    const heard: string[] = [];
    const stop = slots.onRelease((account) => heard.push(account));
    await (await take())?.release();
    stop();
    await (await take())?.release();
    expect(heard).toEqual(['a']);
  });

  it('S29: a renewal that fails is repeated; one that comes too late takes the slot again if there is room', async () => {
    const { timers, network, events, take, running, other } = setUp();
    await take();
    network.fails = true;
    await timers.advance(LEASE_MS / 2);
    network.fails = false;
    await timers.advance(LEASE_MS / 2);
    expect([events, await running()]).toEqual([[], 1]);
    network.fails = true;
    await timers.advance(2 * LEASE_MS);
    expect(await running()).toBe(0);
    network.fails = false;
    await timers.advance(LEASE_MS);
    expect([events, await running()]).toEqual([['taken_again a'], 1]);
    expect(await take(other)).toBeDefined();
  });

  it('S29: a request whose slot was taken meanwhile goes on, is reported as over, and is counted once there is room', async () => {
    const { timers, network, events, take, running, other, memory } = setUp();
    const slot = await take();
    network.fails = true;
    await timers.advance(2 * LEASE_MS);
    const most = { allMethods: 2 };
    const taken = ['1', '2'].map((token) => ({ account: 'a', route: 'r', token, most }));
    for (const each of taken) memory.holdSlot(each, 10 * LEASE_MS);
    network.fails = false;
    await timers.advance(2 * LEASE_MS);
    expect([events, await running()]).toEqual([['over a'], 2]);
    memory.releaseSlot(taken[0] as never);
    await timers.advance(LEASE_MS);
    expect([events, await running()]).toEqual([['over a', 'taken_again a'], 2]);
    expect(await take(other)).toBeUndefined();
    await slot?.release();
    expect(await running()).toBe(1);
  });

  it('S29: a request that never ends is given up after maxRunMs, and reported', async () => {
    const { timers, events, slots, take, running } = setUp({ maxRunMs: 90_000 });
    const slot = await take();
    await timers.advance(89_999);
    expect([events, await running()]).toEqual([[], 1]);
    await timers.advance(1);
    expect([events, await running(), slots.size]).toEqual([['given_up a'], 0, 0]);
    expect([await slot?.release(), timers.waiting]).toEqual([false, 0]);
  });

  it('S29: a release that fails is repeated while the lease lasts; a failed take leaves nothing behind', async () => {
    const { timers, network, take, running } = setUp();
    const slot = await take();
    network.fails = true;
    expect(await slot?.release()).toBe(true);
    await expect(take()).rejects.toThrow('away');
    expect(await running()).toBe(1);
    network.fails = false;
    await timers.advance(LEASE_MS / 12);
    expect([await running(), timers.waiting]).toEqual([0, 0]);
    const next = await take();
    network.fails = true;
    await next?.release();
    const { releases } = network;
    await timers.advance(10 * LEASE_MS);
    expect([network.releases - releases, timers.waiting]).toEqual([12, 0]);
  });

  it('S29: a release that overtakes a renewal wins', async () => {
    const timers = createFakeTimers(0);
    const memory = createMemoryStore({ clock: timers });
    let answer = (): void => {};
    let isSlow = false;
    const store = {
      ...memory,
      synchronous: false,
      async holdSlot(slot, leaseMs) {
        if (isSlow)
          await new Promise<void>((resolve) => {
            answer = resolve;
          });
        return memory.holdSlot(slot, leaseMs);
      },
      releaseSlot: async (slot) => memory.releaseSlot(slot),
    } as LimitStore;
    const slots = new Slots(store, {}, false, timers);
    const { slot } = await slots.take('a', 'r', MOST);
    isSlow = true;
    await timers.advance(LEASE_MS / 3);
    await slot?.release();
    answer();
    await settled();
    expect([slots.size, timers.waiting]).toEqual([0, 0]);
    isSlow = false;
    expect((await slots.count('a', 'r', MOST)).running).toEqual({ allMethods: 0 });
  });

  it('S29: in memory no slot needs a renewal, and 10,000 random endings leave none', () => {
    const timers = createFakeTimers(0);
    const store = createMemoryStore({ clock: timers });
    const slots = new Slots(store, {}, false, timers);
    const held: HeldSlot[] = [];
    let most = 0;
    for (let i = 0; i < 10_000; i++) {
      const taken = slots.take(`acc_${i % 3}`, `route_${i % 2}`, { route: 3, allMethods: 5 });
      if ('slot' in taken && taken.slot !== undefined) held.push(taken.slot);
      most = Math.max(most, held.length);
      if (Math.random() < 0.7) held.splice(Math.floor(Math.random() * held.length), 1)[0]?.release();
    }
    expect(most).toBe(15);
    for (const slot of held) slot.release();
    expect([slots.size, timers.waiting]).toEqual([0, 0]);
    const left = [0, 1, 2].map((i) =>
      store.holdSlot({ account: `acc_${i}`, route: 'route_0', token: '-', most: { route: 0, allMethods: 0 } }, 1),
    );
    expect(left.map(({ running }) => running)).toEqual(Array(3).fill({ route: 0, allMethods: 0 }));
  });

  it('S29: options are checked, and a store that cannot count is refused', () => {
    const store = createMemoryStore();
    const { holdSlot: _, ...without } = store;
    expect(() => new Slots(without as LimitStore)).toThrow(/^store: must have holdSlot\(\): this store cannot count/);
    expect(() => new Slots(store, { leaseMs: 999 })).toThrow('inFlight.leaseMs: must be an integer from 1000');
    expect(() => new Slots(store, { maxRunMs: 0 })).toThrow('inFlight.maxRunMs: must be an integer from 1000');
    expect(() => new Slots(store, { onEvent: 1 as never })).toThrow('onEvent: must be a function');
    expect(() => new Slots(store, { lease: 1 } as never)).toThrow('inFlight.lease: unknown option');
  });
});
