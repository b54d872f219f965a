import { decorateStore } from 'headgate/internal';
import type { LimitStore } from 'headgate/stores';
import { isPromise } from '../base/is-promise.ts';
import { consumerId } from '../config/account-source.ts';

const ADDRESS = consumerId('address', '');

/**
 * A store whose accounts of addresses are in another store. Clients choose their addresses, and the config bounds all
 * other accounts. So only new addresses are refused if there are too many.
 */
export function withAddresses(store: LimitStore, addresses: LimitStore): LimitStore {
  const storeOf = (account: string): LimitStore => (account.startsWith(ADDRESS) ? addresses : store);
  return decorateStore(store, {
    consume:
      () =>
      (account, ...rest) =>
        storeOf(account).consume(account, ...rest),
    peek:
      () =>
      (account, ...rest) =>
        storeOf(account).peek(account, ...rest),
    settleOnce:
      () =>
      (decision, ...rest) =>
        (storeOf(decision.account) as Required<LimitStore>).settleOnce(decision, ...rest),
    lease:
      () =>
      (account, ...rest) =>
        (storeOf(account) as Required<LimitStore>).lease(account, ...rest),
    charge:
      () =>
      (account, ...rest) =>
        (storeOf(account) as Required<LimitStore>).charge(account, ...rest),
    holdSlot:
      () =>
      (slot, ...rest) =>
        (storeOf(slot.account) as Required<LimitStore>).holdSlot(slot, ...rest),
    releaseSlot: () => (slot) => (storeOf(slot.account) as Required<LimitStore>).releaseSlot(slot),
    undo: () => (decision) => (storeOf(decision.account) as Required<LimitStore>).undo(decision),
    knownRejection:
      () =>
      (account, ...rest) =>
        storeOf(account).knownRejection?.(account, ...rest),
    settle: () => (decision, cost) => storeOf(decision.account).settle(decision, cost),
    reset: () => (target) => {
      const stores = target.account === undefined ? [store, addresses] : [storeOf(target.account)];
      const pending = stores.map((each) => each.reset(target)).filter(isPromise);
      return pending.length === 0 ? undefined : Promise.all(pending).then(() => undefined);
    },
    block:
      () =>
      (target, ...rest) =>
        storeOf(target.account).block?.(target, ...rest),
    unblock: () => (target) => storeOf(target.account).unblock?.(target),
    blocked: () => (target) => storeOf(target.account).blocked?.(target),
  });
}
