import { decorateStore } from '../core/decorate-store.ts';
import type { LimitStore } from '../core/ports.ts';
import type { WindowSet } from '../core/window-set.ts';

/** The window sets of addresses. */
export interface AddressWindowSets {
  readonly ofAddress: WindowSet;
  /** For an address that is in a network: its own windows, then those that all addresses of the network share. */
  readonly inNetwork: WindowSet;
  /** The network of an address; undefined if it is in none. */
  networkOf(address: string): string | undefined;
}

/**
 * A store whose accounts are addresses. An address in a network is a route of the network's account, because then one
 * step of any store charges both or neither, and a rejected request creates no record.
 */
export function createAddressStore(
  store: LimitStore,
  { ofAddress, inNetwork, networkOf }: AddressWindowSets,
): LimitStore {
  const counted =
    <Rest extends unknown[], Result>(
      call: (account: string, route: string, windowSet: WindowSet, ...rest: Rest) => Result,
    ) =>
    (address: string, route: string, _windowSet: WindowSet, ...rest: Rest): Result => {
      const network = networkOf(address);
      return network === undefined
        ? call(address, route, ofAddress, ...rest)
        : call(network, address, inNetwork, ...rest);
    };
  return decorateStore(store, {
    consume: counted,
    lease: counted,
    charge: counted,
    peek: counted,
    knownRejection: counted,
  });
}
