import { type LimitStore, MAX_LEASED_REQUESTS } from '../core/ports.ts';
import { assertEqual } from './assert-equal.ts';
import { furtherOf } from './history-run.ts';
import { LATE_RECEIPT, type LimitCases, OTHER_RECEIPT, RECEIPT, remainingOf, windowSet } from './limit-cases.ts';

/** Tests of `lease`, which is optional, by their names. */
export const LEASE_CASES: LimitCases = {
  async 'S32: a lease charges as many equal requests as fit every window, in one step, and none while the account is blocked'(
    store,
  ) {
    if (store.lease === undefined) return;
    const limits = windowSet(['9/1m'], ['20/1d'], 'account');
    const remaining = (): Promise<number[]> => remainingOf(store, limits);
    const lease = async (cost: number, requests: number, route = 'r'): Promise<unknown[]> => {
      const { decision, granted } = await (store as Required<LimitStore>).lease('a', route, limits, cost, requests);
      return [decision.accepted, decision.cost, decision.trace.map((window) => window.remaining), granted];
    };
    // The decision is about the first request alone.
    assertEqual(
      [await lease(2, 3), await remaining()],
      [
        [true, 2, [7, 18], 3],
        [3, 14],
      ],
    );
    assertEqual(
      [await lease(2, 3), await remaining()],
      [
        [true, 2, [1, 12], 1],
        [1, 12],
      ],
    );
    assertEqual(
      [await lease(2, 3), await remaining()],
      [
        [false, 2, [1], 0],
        [1, 12],
      ],
    );
    assertEqual(
      [await lease(1, MAX_LEASED_REQUESTS, 's'), await remaining()],
      [
        [true, 1, [8, 11], 9],
        [1, 3],
      ],
    );
    await store.block?.({ account: 'a' }, { forMs: 1_000 });
    if (store.block !== undefined)
      assertEqual(
        [await lease(1, 5), await remaining()],
        [
          [false, 1, [], 0],
          [1, 3],
        ],
      );
  },

  async 'S32: simultaneous leases and requests charge together what fits'(store) {
    if (store.lease === undefined) return;
    const limits = windowSet(['30/1m'], ['50/1d']);
    const { lease } = store as Required<LimitStore>;
    const granted = await Promise.all(
      [7, 1, 7, 1, 7, 1, 7, 1].map(async (requests) =>
        requests === 1
          ? Number((await store.consume('a', 'r', limits, 1)).accepted)
          : (await lease.call(store, 'a', 'r', limits, 1, requests)).granted,
      ),
    );
    assertEqual(
      granted.reduce((sum, each) => sum + each),
      30,
    );
    assertEqual(await remainingOf(store, limits), [0, 20]);
  },

  async 'S32: what a process did not use is given back once, to the windows that were charged, until a given time'(
    store,
    clock,
  ) {
    if (store.lease === undefined || store.settleOnce === undefined) return;
    const limits = windowSet(['9/1s'], ['20/1m'], 'account');
    const remaining = (): Promise<number[]> => remainingOf(store, limits);
    const grant = await store.lease('a', 'r', limits, 1, 5);
    const until = grant.decision.decidedAt + 500;
    assertEqual([await store.settleOnce(furtherOf(grant), 1, RECEIPT, until), await remaining()], [true, [7, 18]]);
    assertEqual([await store.settleOnce(furtherOf(grant), 1, RECEIPT, until), await remaining()], [false, [7, 18]]);
    clock.advance(500);
    // The last moment, and then one later: the receipt need not be remembered there.
    assertEqual([await store.settleOnce(furtherOf(grant), 1, RECEIPT, until), await remaining()], [false, [7, 18]]);
    assertEqual([await store.settleOnce(grant.decision, 0, OTHER_RECEIPT, until), await remaining()], [true, [8, 19]]);
    const next = await store.lease('a', 'r', limits, 2, 2);
    clock.advance(1);
    assertEqual([await store.settleOnce(furtherOf(next), 0, LATE_RECEIPT, until), await remaining()], [false, [4, 15]]);
    clock.advance(499);
    // Only the longer window is left.
    assertEqual(
      [await store.settleOnce(furtherOf(next), 0, LATE_RECEIPT, clock.now()), await remaining()],
      [true, [9, 17]],
    );
  },
};
