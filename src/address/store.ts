import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Decision, WindowStatus } from '../core/decision.ts';
import type { LimitStore, ResetTarget } from '../core/ports.ts';
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
export class AddressStore implements LimitStore {
  readonly synchronous: boolean;
  readonly identity: object;

  constructor(
    private readonly store: LimitStore,
    private readonly windowSets: AddressWindowSets,
  ) {
    this.synchronous = store.synchronous;
    this.identity = store.identity ?? store;
  }

  consume(address: string, route: string, _windowSet: WindowSet, cost: number): MaybePromise<Decision> {
    const { store, windowSets } = this;
    const network = windowSets.networkOf(address);
    return network === undefined
      ? store.consume(address, route, windowSets.ofAddress, cost)
      : store.consume(network, address, windowSets.inNetwork, cost);
  }

  peek(address: string, route: string, _windowSet: WindowSet): MaybePromise<readonly WindowStatus[]> {
    const { store, windowSets } = this;
    const network = windowSets.networkOf(address);
    return network === undefined
      ? store.peek(address, route, windowSets.ofAddress)
      : store.peek(network, address, windowSets.inNetwork);
  }

  settle(decision: Decision, cost: number): MaybePromise<boolean> {
    return this.store.settle(decision, cost);
  }

  reset(target: ResetTarget): MaybePromise<void> {
    return this.store.reset(target);
  }
}
