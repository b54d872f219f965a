import { getOrCreate } from '../base/get-or-create.ts';
import type { WindowSet } from '../core/window-set.ts';
import { Pair } from './pair.ts';

type ByAccount = Map<string, Map<string, Pair>>;

/** The pairs of account and route that are watched, per lane. Bounded: a new one is refused while there are too many. */
export class Pairs {
  /** Those of requests without a lane. */
  readonly #byAccount: ByAccount = new Map();
  /** By the name of a lane. */
  readonly #inLanes = new Map<string, ByAccount>();
  readonly #most: number;
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  find(account: string, route: string, lane: string | undefined): Pair | undefined {
    return this.#ofLane(lane)?.get(account)?.get(route);
  }

  /** The pairs of an account, of a route of every account, of one route of one account, or (neither) all. */
  *matching(account: string | undefined, route: string | undefined): Generator<Pair, void> {
    for (const byAccount of this.#lanes()) {
      const accounts = account === undefined ? byAccount.values() : [byAccount.get(account) ?? new Map<string, Pair>()];
      for (const pairs of accounts)
        for (const pair of pairs.values()) if ((route ?? pair.route) === pair.route) yield pair;
    }
  }

  /** Whether several pairs of the account are watched. */
  hasSeveral(account: string): boolean {
    let pairs = 0;
    for (const byAccount of this.#lanes()) pairs += byAccount.get(account)?.size ?? 0;
    return pairs > 1;
  }

  /** Adds a pair that is not watched yet. Returns undefined if there is no room. */
  add(account: string, route: string, windowSet: WindowSet, now: number): Pair | undefined {
    if (this.#size >= this.#most) return undefined;
    const pair = new Pair(account, route, windowSet, now);
    const { lane } = windowSet;
    const byAccount =
      lane === undefined ? this.#byAccount : getOrCreate(this.#inLanes, lane, (): ByAccount => new Map());
    getOrCreate(byAccount, account, () => new Map<string, Pair>()).set(route, pair);
    this.#size++;
    return pair;
  }

  delete({ account, route, windowSet: { lane } }: Pair): void {
    const byAccount = this.#ofLane(lane);
    const pairs = byAccount?.get(account);
    if (!pairs?.delete(route)) return;
    this.#size--;
    if (pairs.size === 0) byAccount?.delete(account);
    if (lane !== undefined && byAccount?.size === 0) this.#inLanes.delete(lane);
  }

  #ofLane(lane: string | undefined): ByAccount | undefined {
    return lane === undefined ? this.#byAccount : this.#inLanes.get(lane);
  }

  #lanes(): ByAccount[] {
    return [this.#byAccount, ...this.#inLanes.values()];
  }
}
