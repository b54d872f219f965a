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
  return decorateStore(store, {
    consume: (consume) => (address, route, _windowSet, cost) => {
      const network = networkOf(address);
      return network === undefined
        ? consume(address, route, ofAddress, cost)
        : consume(network, address, inNetwork, cost);
    },
    lease: (lease) => (address, route, _windowSet, cost, requests) => {
      const network = networkOf(address);
      return network === undefined
        ? lease(address, route, ofAddress, cost, requests)
        : lease(network, address, inNetwork, cost, requests);
    },
    charge: (charge) => (address, route, _windowSet, cost) => {
      const network = networkOf(address);
      return network === undefined
        ? charge(address, route, ofAddress, cost)
        : charge(network, address, inNetwork, cost);
    },
    peek: (peek) => (address, route, _windowSet) => {
      const network = networkOf(address);
      return network === undefined ? peek(address, route, ofAddress) : peek(network, address, inNetwork);
    },
  });
}
