import type { InFlight, SlotReply } from '../core/slot.ts';
import { assertEqual } from './assert-equal.ts';
import { type LimitCases, windowSet } from './limit-cases.ts';

const LEASE_MS = 1_000;

/** Tests of slots, which are optional, by their names. */
export const SLOT_CASES: LimitCases = {
  async 'S29: as many requests as a limit allows hold a slot at the same time, of each account and each route'(store) {
    if (store.holdSlot === undefined || store.releaseSlot === undefined) return;
    const { holdSlot, releaseSlot } = {
      holdSlot: store.holdSlot.bind(store),
      releaseSlot: store.releaseSlot.bind(store),
    };
    const hold = async (token: string, most: InFlight, route = 'r', account = 'a'): Promise<unknown[]> =>
      shown(await holdSlot({ account, route, token, most }, LEASE_MS));
    const both = { route: 2, allMethods: 3 };
    assertEqual(await hold('1', both), [true, 1, 1]);
    assertEqual(await hold('2', both), [true, 2, 2]);
    // All or none: a slot that the route rejects is not taken in the account either.
    assertEqual(await hold('3', both), [false, 2, 2]);
    assertEqual(await hold('4', both, 's'), [true, 1, 3]);
    assertEqual(await hold('5', both, 't'), [false, 0, 3]);
    assertEqual(await hold('6', { allMethods: 3 }, 'u'), [false, undefined, 3]);
    assertEqual(await hold('7', { route: 2 }, 't'), [true, 1, undefined]);
    assertEqual(await hold('8', both, 'r', 'b'), [true, 1, 1]);
    // The same slot once more is only renewed.
    assertEqual(await hold('2', both), [true, 2, 3]);
    await releaseSlot({ account: 'a', route: 'r', token: '1', most: both });
    await releaseSlot({ account: 'a', route: 'r', token: '1', most: both });
    await releaseSlot({ account: 'a', route: 'r', token: 'unknown', most: both });
    assertEqual(await hold('3', both), [true, 2, 3]);
    // 0 only counts. A max that was lowered lets no more in.
    assertEqual(await hold('9', { route: 0, allMethods: 0 }), [false, 2, 3]);
    assertEqual(await hold('9', { route: 9, allMethods: 2 }), [false, 2, 3]);
    assertEqual(await hold('3', { route: 1, allMethods: 1 }), [true, 2, 3]);
  },

  async 'S29: a slot that is not renewed comes back when its lease is over; a late renewal takes it if there is room'(
    store,
    clock,
  ) {
    const { holdSlot } = store;
    if (holdSlot === undefined || store.releaseSlot === undefined) return;
    const most = { route: 1, allMethods: 2 };
    const hold = async (token: string, leaseMs = LEASE_MS, route = 'r'): Promise<unknown[]> =>
      shown(await holdSlot.call(store, { account: 'a', route, token, most }, leaseMs));
    await hold('1');
    clock.advance(LEASE_MS - 1);
    assertEqual(
      [await hold('2'), await hold('1')],
      [
        [false, 1, 1],
        [true, 1, 1],
      ],
    );
    clock.advance(LEASE_MS - 1);
    assertEqual(await hold('2'), [false, 1, 1]);
    clock.advance(1);
    assertEqual(await hold('2', 5 * LEASE_MS), [true, 1, 1]);
    assertEqual(await hold('1'), [false, 1, 1]);
    assertEqual(await hold('3', LEASE_MS, 's'), [true, 1, 2]);
    clock.advance(LEASE_MS);
    // The slot with the shorter lease came later, and is over earlier.
    assertEqual(await hold('4', LEASE_MS, 't'), [true, 1, 2]);
    await store.releaseSlot({ account: 'a', route: 'r', token: '2', most });
    assertEqual(await hold('1'), [true, 1, 2]);
    clock.advance(100_000_000);
    assertEqual(await hold('5'), [true, 1, 1]);
  },

  async 'S29: of simultaneous requests as many take a slot as fit; a reset and a block change no slot'(store) {
    const { holdSlot, releaseSlot } = store;
    if (holdSlot === undefined || releaseSlot === undefined) return;
    const most = { route: 4, allMethods: 5 };
    const slots = Array.from({ length: 40 }, (_, i) => ({
      account: i < 20 ? 'a' : 'b',
      route: i % 2 === 0 ? 'r' : 's',
      token: `t${i}`,
      most,
    }));
    const held = async (): Promise<number[]> => {
      const replies = await Promise.all(slots.map((slot) => holdSlot.call(store, slot, LEASE_MS)));
      return ['a', 'b'].map((account) => replies.filter(({ held }, i) => held && slots[i]?.account === account).length);
    };
    assertEqual(await held(), [5, 5]);
    await store.reset({ account: 'a' });
    await store.reset({});
    await store.block?.({ account: 'a' }, { forMs: 1 }, { longestMs: 1 });
    assertEqual((await store.consume('b', 'r', windowSet(['1/1m'], []), 1)).accepted, true);
    assertEqual(await held(), [5, 5]);
    await Promise.all(slots.map((slot) => releaseSlot.call(store, slot)));
    const count = await holdSlot.call(
      store,
      { account: 'a', route: 'r', token: '-', most: { route: 0, allMethods: 0 } },
      1,
    );
    assertEqual(shown(count), [false, 0, 0]);
  },
};

function shown({ held, running }: SlotReply): unknown[] {
  return [held, running.route, running.allMethods];
}
