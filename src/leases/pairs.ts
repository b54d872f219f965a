import type { WindowSet } from '../core/window-set.ts';
import { Pair } from './pair.ts';

/** The pairs of account and route that are watched. Bounded: a new one is refused while there are too many. */
export class Pairs {
  readonly #byAccount = new Map<string, Map<string, Pair>>();
  readonly #most: number;
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  find(account: string, route: string): Pair | undefined {
    return this.#byAccount.get(account)?.get(route);
  }

  /** The pairs of an account, of a route of every account, of one route of one account, or (neither) all. */
  *matching(account: string | undefined, route: string | undefined): Generator<Pair, void> {
    const accounts =
      account === undefined ? this.#byAccount.values() : [this.#byAccount.get(account) ?? new Map<string, Pair>()];
    for (const pairs of accounts)
      for (const pair of pairs.values()) if ((route ?? pair.route) === pair.route) yield pair;
  }

  /** Whether several routes of the account are watched. */
  hasSeveral(account: string): boolean {
    return (this.#byAccount.get(account)?.size ?? 0) > 1;
  }

  /** Adds a pair that is not watched yet. Returns undefined if there is no room. */
  add(account: string, route: string, windowSet: WindowSet, now: number): Pair | undefined {
    if (this.#size >= this.#most) return undefined;
    const pair = new Pair(account, route, windowSet, now);
    const pairs = this.#byAccount.get(account);
    if (pairs === undefined) this.#byAccount.set(account, new Map([[route, pair]]));
    else pairs.set(route, pair);
    this.#size++;
    return pair;
  }

  delete({ account, route }: Pair): void {
    const pairs = this.#byAccount.get(account);
    if (!pairs?.delete(route)) return;
    this.#size--;
    if (pairs.size === 0) this.#byAccount.delete(account);
  }
}
