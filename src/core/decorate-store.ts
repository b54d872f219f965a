import { decorate, type MethodTable, type Wrappers } from '../base/decorate.ts';
import type { LimitStore } from './ports.ts';

const METHODS: MethodTable<LimitStore> = {
  consume: true,
  peek: true,
  settle: true,
  undo: true,
  knownRejection: true,
  settleOnce: true,
  lease: true,
  charge: true,
  holdSlot: true,
  releaseSlot: true,
  reset: true,
  block: true,
  unblock: true,
  blocked: true,
  cooldown: true,
  ready: true,
  close: true,
};

/**
 * The same store, with other methods in place of some of its methods. It keeps the store's counters, and so its
 * identity.
 * @example
 * ```ts
 * const counted = decorateStore(store, { consume: (consume) => (...args) => { calls++; return consume(...args); } });
 * ```
 */
export function decorateStore(store: LimitStore, wrappers: Wrappers<LimitStore>): LimitStore {
  const { synchronous, identity = store } = store;
  return decorate(store, METHODS, { synchronous, identity }, wrappers);
}
