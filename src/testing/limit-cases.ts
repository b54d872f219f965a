import { parseLimit } from '../core/limit.ts';
import type { LimitStore } from '../core/ports.ts';
import { type AllMethodsScope, createWindowSet, type WindowSet } from '../core/window-set.ts';
import type { FakeClock } from './fake-clock.ts';

/** Tests of a new, empty store, by their names. A store that lacks the tested method passes. */
export type LimitCases = Readonly<Record<string, (store: LimitStore, clock: FakeClock) => Promise<void>>>;

export const RECEIPT = 'aaaaaaaaaaaaaaaaaaaaaa';
export const OTHER_RECEIPT = 'bbbbbbbbbbbbbbbbbbbbbb';
export const LATE_RECEIPT = 'cccccccccccccccccccc-_';

export function windowSet(route: string[], allMethods: string[], scope?: AllMethodsScope): WindowSet {
  return createWindowSet(parseLimit(route), parseLimit(allMethods), scope);
}

/** What remains in each window. */
export async function remainingOf(store: LimitStore, limits: WindowSet, account = 'a', route = 'r'): Promise<number[]> {
  return (await store.peek(account, route, limits)).map(({ remaining }) => remaining);
}
