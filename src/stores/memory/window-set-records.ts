import { type Counters, isOver, SLOTS_PER_WINDOW } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';
import { emptyCounters } from './counters.ts';
import type { RecordName } from './names.ts';
import type { Records, RecordView } from './records.ts';
import { NOWHERE } from './slab.ts';
import { indexOfWindow, partOf, partsOf, type WindowSetPart } from './window-set-part.ts';

/** Accounts checked when the store is full, before a new pair is refused. */
const ACCOUNTS_WHEN_FULL = 256;

/** The route of the record for All methods, if the account's routes share that limit. */
const ALL_ROUTES = Symbol('every route');

/** A copy of the counters of a window set, and the addresses of their records. */
export interface LoadedCounters {
  readonly counters: Counters;
  readonly addresses: readonly number[];
}

/**
 * The counters of window sets, in the general case: a window set can need two records, and a record can be missing or
 * contain other windows.
 */
export class WindowSetRecords {
  readonly #records: Records;
  readonly #maxKeys: number;
  readonly #partsOfWindowSet = new WeakMap<WindowSet, readonly WindowSetPart[]>();

  constructor(records: Records, maxKeys: number) {
    this.#records = records;
    this.#maxKeys = maxKeys;
  }

  parts(windowSet: WindowSet): readonly WindowSetPart[] {
    let parts = this.#partsOfWindowSet.get(windowSet);
    if (parts === undefined) {
      parts = partsOf(windowSet);
      this.#partsOfWindowSet.set(windowSet, parts);
    }
    return parts;
  }

  view(account: string, route: string, part: WindowSetPart): RecordView {
    return this.#records.view(this.#records.findAny(account, nameOf(part, route)));
  }

  load(account: string, route: string, windowSet: WindowSet, now: number): LoadedCounters {
    const parts = this.parts(windowSet);
    const addresses = parts.map((part) => this.#locate(account, nameOf(part, route), part, now));
    const counters = emptyCounters(windowSet);
    for (const [i, { from, to }] of parts.entries())
      this.#records.slab.load(addresses[i] as number, counters, from, to);
    return { counters, addresses };
  }

  /**
   * Writes the counters to their records, and adds those that are missing. Returns false, and changes nothing, if there
   * is no room for them.
   */
  save(
    account: string,
    route: string,
    windowSet: WindowSet,
    { counters, addresses: found }: LoadedCounters,
    now: number,
  ): boolean {
    const parts = this.parts(windowSet);
    let addresses = found;
    if (!this.#hasRoom(addresses)) {
      this.#records.sweep(ACCOUNTS_WHEN_FULL, now);
      // The sweep can have deleted a record of this account that was over.
      addresses = parts.map((part) => this.#locate(account, nameOf(part, route), part, now));
      if (!this.#hasRoom(addresses)) return false;
    }
    for (const [i, part] of parts.entries()) {
      let address = addresses[i] as number;
      if (address === NOWHERE) address = this.#records.add(account, nameOf(part, route), part);
      this.#records.slab.save(address, counters, part.from, part.to);
    }
    return true;
  }

  /** Address of the record, which is rebuilt if its windows are not the part's. */
  #locate(account: string, name: RecordName, part: WindowSetPart, now: number): number {
    const address = this.#records.findAny(account, name);
    if (address === NOWHERE || this.#records.hasLayout(address, part)) return address;
    return this.#rebuild(account, name, address, part, now);
  }

  /**
   * Makes the record start with the part's windows, and returns its new address (S10). Windows of an earlier window set
   * that are not over follow them: if that window set comes back, its counts still apply. That happens when two
   * gateways use different window sets for some minutes during a deployment.
   */
  #rebuild(account: string, name: RecordName, before: number, part: WindowSetPart, now: number): number {
    const { windows, ...view } = this.#records.view(before);
    const counters = view.counters.slice();
    const leftover = windows.filter(
      (window, i) =>
        indexOfWindow(part.windows, window) === -1 &&
        !isOver(counters[i * SLOTS_PER_WINDOW] as number, window.durationMs, now),
    );
    const rebuilt = partOf([...part.windows, ...leftover]);
    if (this.#records.hasLayout(before, rebuilt)) return before;
    this.#records.remove(account, name);
    const address = this.#records.add(account, name, rebuilt);
    const moved = this.#records.view(address).counters;
    for (const [i, window] of rebuilt.windows.entries()) {
      const from = indexOfWindow(windows, window) * SLOTS_PER_WINDOW;
      if (from >= 0) moved.set(counters.subarray(from, from + SLOTS_PER_WINDOW), i * SLOTS_PER_WINDOW);
    }
    return address;
  }

  /** Whether there is room for the missing records (S18). */
  #hasRoom(addresses: readonly number[]): boolean {
    return this.#records.size + addresses.filter((address) => address === NOWHERE).length <= this.#maxKeys;
  }
}

function nameOf({ shared }: WindowSetPart, route: string): RecordName {
  return shared ? ALL_ROUTES : route;
}
