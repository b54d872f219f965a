import type { PlanWindow } from '../../core/plan.ts';
import { type Counters, isOver, SLOTS_PER_WINDOW } from '../../core/window.ts';
import { Accounts, type Held } from './accounts.ts';
import { Names, type RecordName, UNKNOWN } from './names.ts';
import type { Part } from './part.ts';
import { HEADER, NEXT, NOWHERE, Slab, TAG } from './slab.ts';

/** Past this many routes an account's records are found through a map; up to it, by walking from one to the next. */
const MOST_LINKED = 8;

/** How many records of one account a single sweep step looks at. */
const SWEPT_OF_ONE_ACCOUNT = 16;

/** A record's tag is its route's number times this, plus its layout's: both below 2^26, so that the tag is a safe integer. */
const LAYOUTS = 2 ** 26;

type ByRoute = Map<number, number>;

/** A record's windows, in its order, and their counters, which are the record's own: whoever writes to them changes it. */
export interface RecordView {
  readonly windows: readonly PlanWindow[];
  readonly counters: Counters;
}

const NOTHING: RecordView = { windows: [], counters: new Float64Array() };

/** Finds the one record of an (account, route), and the records that are over. */
export class Records {
  readonly slab = new Slab();
  readonly #routes = new Names();
  readonly #layoutNames = new Names();
  readonly #layouts: (readonly PlanWindow[])[] = [];
  readonly #accounts: Accounts;
  #size = 0;
  #swept = 0;
  #lastRoute: RecordName | undefined;
  #lastPart: Part | undefined;
  #lastTag = UNKNOWN;

  constructor(maxKeys: number) {
    this.#accounts = new Accounts(maxKeys);
  }

  /** Records held, over ones that were not swept yet included. */
  get size(): number {
    return this.#size;
  }

  /** Records that were over and have left. */
  get swept(): number {
    return this.#swept;
  }

  /** Address of the pair's record if it holds exactly the part's windows, else NOWHERE. */
  find(account: string, route: RecordName, part: Part): number {
    // Traffic comes in runs of one route and plan: two comparisons instead of two look-ups by name.
    const tag = route === this.#lastRoute && part === this.#lastPart ? this.#lastTag : this.#tag(route, part);
    const held = this.#accounts.get(account);
    // Most accounts have few routes at a time, and the newest record stands first.
    if (typeof held === 'number' && this.slab.read(held, TAG) === tag) return held;
    return held === undefined || tag === UNKNOWN ? NOWHERE : this.#search(held, tag);
  }

  /** Address of the pair's record, whatever windows it holds, or NOWHERE. */
  findAny(account: string, route: RecordName): number {
    const routeId = this.#routes.find(route);
    const held = this.#accounts.get(account);
    if (held === undefined || routeId === UNKNOWN) return NOWHERE;
    if (typeof held !== 'number') return held.get(routeId) ?? NOWHERE;
    let address = held;
    while (address !== NOWHERE && this.#routeId(address) !== routeId) address = this.slab.read(address, NEXT);
    return address;
  }

  /** Whether a record holds exactly the part's windows. */
  holds(address: number, part: Part): boolean {
    return this.#layoutNames.find(part.layout) === this.#layoutId(address);
  }

  /** The record at an address, which may be {@link NOWHERE}. */
  view(address: number): RecordView {
    if (address === NOWHERE) return NOTHING;
    const windows = this.#windows(address);
    return { windows, counters: this.slab.counters(address, windows.length) };
  }

  /** Adds the pair's record, without any instance yet. The pair must have none. */
  add(account: string, route: RecordName, part: Part): number {
    const { windows } = part;
    const address = this.slab.allocate(windows.length);
    const routeId = this.#routes.acquire(route);
    const layoutId = this.#layoutNames.acquire(part.layout);
    this.#layouts[layoutId] = windows;
    this.slab.write(address, TAG, routeId * LAYOUTS + layoutId);
    this.#link(account, routeId, address);
    this.#size++;
    return address;
  }

  /** Removes the account's records of which `leaves` says so. */
  removeWhere(
    account: string,
    leaves: (address: number, routeId: number) => boolean,
    most = Number.POSITIVE_INFINITY,
  ): number {
    const held = this.#accounts.get(account);
    if (held === undefined) return 0;
    return typeof held === 'number'
      ? this.#removeLinked(account, held, leaves)
      : this.#removeMapped(account, held, leaves, most);
  }

  remove(account: string, route: RecordName): void {
    const id = this.#routes.find(route);
    if (id !== UNKNOWN) this.removeWhere(account, (_, routeId) => routeId === id);
  }

  /** Forgets a route of every account at once; its records leave with the next sweeps. */
  retireRoute(route: RecordName): void {
    this.#lastRoute = undefined;
    this.#routes.retire(route);
  }

  /** Looks at up to `most` accounts, in an order that goes round: what is over leaves. */
  sweep(most: number, now: number): void {
    const leaves = (address: number, routeId: number): boolean =>
      this.#routes.isRetired(routeId) || this.#isOver(address, now);
    // One more than there are, for the end of the round.
    for (let looks = Math.min(most, this.#size + 1); looks > 0; looks--) {
      const account = this.#accounts.next();
      if (account !== undefined) this.#swept += this.removeWhere(account, leaves, SWEPT_OF_ONE_ACCOUNT);
    }
  }

  #search(held: Held, tag: number): number {
    if (typeof held !== 'number') {
      const address = held.get(Math.floor(tag / LAYOUTS)) ?? NOWHERE;
      return address !== NOWHERE && this.slab.read(address, TAG) === tag ? address : NOWHERE;
    }
    let address = held;
    while (address !== NOWHERE && this.slab.read(address, TAG) !== tag) address = this.slab.read(address, NEXT);
    return address;
  }

  #windows(address: number): readonly PlanWindow[] {
    return this.#layouts[this.#layoutId(address)] as readonly PlanWindow[];
  }

  #tag(route: RecordName, part: Part): number {
    const routeId = this.#routes.find(route);
    const layoutId = this.#layoutNames.find(part.layout);
    if (routeId === UNKNOWN || layoutId === UNKNOWN) return UNKNOWN;
    this.#lastRoute = route;
    this.#lastPart = part;
    this.#lastTag = routeId * LAYOUTS + layoutId;
    return this.#lastTag;
  }

  #link(account: string, routeId: number, address: number): void {
    const held = this.#accounts.get(account);
    if (held === undefined || typeof held === 'number') {
      this.slab.write(address, NEXT, held ?? NOWHERE);
      const linked = this.#addresses(address);
      this.#accounts.set(account, linked.length > MOST_LINKED ? this.#byRoute(linked) : address);
    } else {
      held.set(routeId, address);
    }
  }

  #addresses(first: number): number[] {
    const addresses = [];
    for (let address = first; address !== NOWHERE; address = this.slab.read(address, NEXT)) addresses.push(address);
    return addresses;
  }

  #byRoute(addresses: readonly number[]): ByRoute {
    return new Map(addresses.map((address) => [this.#routeId(address), address]));
  }

  #removeLinked(account: string, first: number, leaves: (address: number, routeId: number) => boolean): number {
    const linked = this.#addresses(first);
    const staying = linked.filter((address) => !leaves(address, this.#routeId(address)));
    if (staying.length === linked.length) return 0;
    for (const address of linked) if (!staying.includes(address)) this.#release(address);
    for (const [i, address] of staying.entries()) this.slab.write(address, NEXT, staying[i + 1] ?? NOWHERE);
    if (staying.length === 0) this.#accounts.delete(account);
    else this.#accounts.set(account, staying[0] as number);
    return linked.length - staying.length;
  }

  #removeMapped(
    account: string,
    byRoute: ByRoute,
    leaves: (address: number, routeId: number) => boolean,
    most: number,
  ): number {
    const looked = Math.min(most, byRoute.size);
    const sizeBefore = byRoute.size;
    const entries = byRoute.entries();
    for (let i = 0; i < looked; i++) {
      const [routeId, address] = (entries.next() as IteratorYieldResult<[number, number]>).value;
      byRoute.delete(routeId);
      // Whoever stays goes to the back, so that the next steps look at others.
      if (leaves(address, routeId)) this.#release(address);
      else byRoute.set(routeId, address);
    }
    if (byRoute.size === 0) this.#accounts.delete(account);
    return sizeBefore - byRoute.size;
  }

  #release(address: number): void {
    const windows = this.#windows(address).length;
    this.#lastRoute = undefined;
    this.#routes.release(this.#routeId(address));
    this.#layoutNames.release(this.#layoutId(address));
    this.slab.release(address, windows);
    this.#size--;
  }

  #isOver(address: number, now: number): boolean {
    const counters = this.slab.chunk(address);
    const first = this.slab.offset(address) + HEADER;
    return this.#windows(address).every((window, i) =>
      isOver(counters[first + i * SLOTS_PER_WINDOW] as number, window.durationMs, now),
    );
  }

  #routeId(address: number): number {
    return Math.floor(this.slab.read(address, TAG) / LAYOUTS);
  }

  #layoutId(address: number): number {
    return this.slab.read(address, TAG) % LAYOUTS;
  }
}
