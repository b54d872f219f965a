import { type Counters, isOver, SLOTS_PER_WINDOW } from '../../core/window.ts';
import type { NamedWindow } from '../../core/window-set.ts';
import { Names, type RecordName, UNKNOWN } from './names.ts';
import { ShardedMap } from './sharded-map.ts';
import { HEADER, NEXT, NOWHERE, Slab, TAG } from './slab.ts';
import type { WindowSetPart } from './window-set-part.ts';

/** Up to this many routes, the records of an account are a linked list; an account with more uses a map. */
const MAX_LINKED = 8;

/** Most records of one account that one step of the sweep checks. */
const RECORDS_PER_STEP = 16;

/** A record's tag is its route's number times this, plus its layout's number. Both are below 2^26, so it is exact. */
const LAYOUTS = 2 ** 26;

type AddressByRoute = Map<number, number>;

/** Records of an account: the address of the first one of the list, or the addresses by the route's number. */
type AccountRecords = number | AddressByRoute;

/** Whether the sweep or a reset deletes the record. */
type ShouldDelete = (address: number, routeId: number) => boolean;

/** A record's windows in its order, and their counters. Writing to the counters changes the record. */
export interface RecordView {
  readonly windows: readonly NamedWindow[];
  readonly counters: Counters;
}

const NO_RECORD: RecordView = { windows: [], counters: new Float64Array() };

/** Finds the one record of an (account, route), and sweeps the records whose windows are all over. */
export class Records {
  readonly slab = new Slab();
  readonly #routes = new Names();
  readonly #layoutNames = new Names();
  readonly #layouts: (readonly NamedWindow[])[] = [];
  readonly #accounts: ShardedMap<AccountRecords>;
  #size = 0;
  #swept = 0;
  #lastRoute: RecordName | undefined;
  #lastPart: WindowSetPart | undefined;
  #lastTag = UNKNOWN;

  constructor(maxKeys: number) {
    this.#accounts = new ShardedMap(maxKeys);
  }

  /** Number of records, including those that are over but not swept yet. */
  get size(): number {
    return this.#size;
  }

  /** Number of records that were swept. */
  get swept(): number {
    return this.#swept;
  }

  /** Address of the pair's record if it contains exactly the part's windows, else {@link NOWHERE}. */
  find(account: string, route: RecordName, part: WindowSetPart): number {
    // Requests of one route and window set often follow each other: then two comparisons replace two look-ups by name.
    const tag = route === this.#lastRoute && part === this.#lastPart ? this.#lastTag : this.#tag(route, part);
    const found = this.#accounts.get(account);
    // Most accounts use few routes at a time, and the newest record is the first.
    if (typeof found === 'number' && this.slab.read(found, TAG) === tag) return found;
    return found === undefined ? NOWHERE : this.#search(found, tag);
  }

  /** Address of the pair's record, whatever its windows, or {@link NOWHERE}. */
  findAny(account: string, route: RecordName): number {
    const routeId = this.#routes.find(route);
    const found = this.#accounts.get(account);
    if (found === undefined) return NOWHERE;
    if (typeof found !== 'number') return found.get(routeId) ?? NOWHERE;
    let address = found;
    while (address !== NOWHERE && this.#routeId(address) !== routeId) address = this.slab.read(address, NEXT);
    return address;
  }

  /** Whether a record contains exactly the part's windows. */
  hasLayout(address: number, part: WindowSetPart): boolean {
    return this.#layoutNames.find(part.layout) === this.#layoutId(address);
  }

  /** The record at an address. The address can be {@link NOWHERE}. */
  view(address: number): RecordView {
    if (address === NOWHERE) return NO_RECORD;
    const windows = this.#windows(address);
    return { windows, counters: this.slab.counters(address, windows.length) };
  }

  /** Adds a record for a pair without one. Its windows are without an instance yet. Returns its address. */
  add(account: string, route: RecordName, part: WindowSetPart): number {
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

  /**
   * Deletes the account's records for which `shouldDelete` returns true, and returns how many these were.
   * @param maxChecked most records to check, if the account uses a map
   */
  removeWhere(account: string, shouldDelete: ShouldDelete, maxChecked = Number.POSITIVE_INFINITY): number {
    const found = this.#accounts.get(account);
    if (found === undefined) return 0;
    return typeof found === 'number'
      ? this.#removeLinked(account, found, shouldDelete)
      : this.#removeMapped(account, found, shouldDelete, maxChecked);
  }

  remove(account: string, route: RecordName): void {
    const id = this.#routes.find(route);
    this.removeWhere(account, (_, routeId) => routeId === id);
  }

  /** Makes a route of every account unknown at once. The next sweeps delete its records. */
  retireRoute(route: RecordName): void {
    this.#lastRoute = undefined;
    this.#routes.retire(route);
  }

  /**
   * Checks up to `maxAccounts` accounts, in rounds over all of them, and deletes the records whose windows are over.
   */
  sweep(maxAccounts: number, now: number): void {
    const shouldDelete = (address: number, routeId: number): boolean =>
      this.#routes.isRetired(routeId) || this.#isOver(address, now);
    // One more than there are, because the end of a round also takes a step.
    for (let steps = Math.min(maxAccounts, this.#size + 1); steps > 0; steps--) {
      const account = this.#accounts.nextKey();
      if (account !== undefined) this.#swept += this.removeWhere(account, shouldDelete, RECORDS_PER_STEP);
    }
  }

  #search(records: AccountRecords, tag: number): number {
    if (typeof records !== 'number') {
      const address = records.get(Math.floor(tag / LAYOUTS)) ?? NOWHERE;
      return address !== NOWHERE && this.slab.read(address, TAG) === tag ? address : NOWHERE;
    }
    let address = records;
    while (address !== NOWHERE && this.slab.read(address, TAG) !== tag) address = this.slab.read(address, NEXT);
    return address;
  }

  #windows(address: number): readonly NamedWindow[] {
    return this.#layouts[this.#layoutId(address)] as readonly NamedWindow[];
  }

  #tag(route: RecordName, part: WindowSetPart): number {
    const routeId = this.#routes.find(route);
    const layoutId = this.#layoutNames.find(part.layout);
    if (routeId === UNKNOWN || layoutId === UNKNOWN) return UNKNOWN;
    this.#lastRoute = route;
    this.#lastPart = part;
    this.#lastTag = routeId * LAYOUTS + layoutId;
    return this.#lastTag;
  }

  #link(account: string, routeId: number, address: number): void {
    const records = this.#accounts.get(account);
    if (records === undefined || typeof records === 'number') {
      this.slab.write(address, NEXT, records ?? NOWHERE);
      const linked = this.#addresses(address);
      this.#accounts.set(account, linked.length > MAX_LINKED ? this.#byRoute(linked) : address);
    } else {
      records.set(routeId, address);
    }
  }

  #addresses(first: number): number[] {
    const addresses = [];
    for (let address = first; address !== NOWHERE; address = this.slab.read(address, NEXT)) addresses.push(address);
    return addresses;
  }

  #byRoute(addresses: readonly number[]): AddressByRoute {
    return new Map(addresses.map((address) => [this.#routeId(address), address]));
  }

  #removeLinked(account: string, first: number, shouldDelete: ShouldDelete): number {
    // Most sweeps delete nothing, and then nothing is allocated.
    let address = first;
    while (address !== NOWHERE && !shouldDelete(address, this.#routeId(address)))
      address = this.slab.read(address, NEXT);
    if (address === NOWHERE) return 0;
    const linked = this.#addresses(first);
    const staying = linked.filter((address) => !shouldDelete(address, this.#routeId(address)));
    for (const address of linked) if (!staying.includes(address)) this.#release(address);
    for (const [i, address] of staying.entries()) this.slab.write(address, NEXT, staying[i + 1] ?? NOWHERE);
    if (staying.length === 0) this.#accounts.delete(account);
    else this.#accounts.set(account, staying[0] as number);
    return linked.length - staying.length;
  }

  #removeMapped(account: string, byRoute: AddressByRoute, shouldDelete: ShouldDelete, maxChecked: number): number {
    const checked = Math.min(maxChecked, byRoute.size);
    const sizeBefore = byRoute.size;
    const entries = byRoute.entries();
    for (let i = 0; i < checked; i++) {
      const [routeId, address] = (entries.next() as IteratorYieldResult<[number, number]>).value;
      byRoute.delete(routeId);
      // A record that stays moves to the end, so that the next steps check others.
      if (shouldDelete(address, routeId)) this.#release(address);
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
    const windows = this.#windows(address);
    for (let i = 0; i < windows.length; i++) {
      const { durationMs } = windows[i] as NamedWindow;
      if (!isOver(counters[first + i * SLOTS_PER_WINDOW] as number, durationMs, now)) return false;
    }
    return true;
  }

  #routeId(address: number): number {
    return Math.floor(this.slab.read(address, TAG) / LAYOUTS);
  }

  #layoutId(address: number): number {
    return this.slab.read(address, TAG) % LAYOUTS;
  }
}
