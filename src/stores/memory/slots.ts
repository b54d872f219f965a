import { StoreFullError } from '../../base/errors.ts';
import { IN_FLIGHT_LIMITS, type InFlight, type Slot, type SlotReply } from '../../core/slot.ts';

/** The tokens of one limit, each with the end of its lease. Renewed ones are last, so that the first end first. */
type Tokens = Map<string, number>;

/** Limits that are searched for slots that are over, before a new one is refused. */
const SEARCHED_WHEN_FULL = 256;

/** Slots of requests in flight (S29). Bounded: a slot whose lease is not over is never forgotten to make room. */
export class SlotTable {
  /** Only limits with slots. */
  readonly #byLimit = new Map<string, Tokens>();
  readonly #maxSlots: number;
  #size = 0;

  constructor(maxSlots: number) {
    this.#maxSlots = maxSlots;
  }

  /** Number of slots, including those whose lease is over but that are not removed yet. A slot of two limits counts twice. */
  get size(): number {
    return this.#size;
  }

  /**
   * Takes a slot, or renews its lease.
   * @param isForced whether it is taken although there is no room
   * @throws StoreFullError; nothing is changed then
   */
  hold(slot: Slot, leaseMs: number, now: number, isForced = false): SlotReply {
    const places = placesOf(slot).map(({ limit, key, max }) => {
      const isHeld = this.#isHeld(key, slot.token, now);
      return { limit, key, isHeld, hasRoom: isHeld || isForced || this.#running(key, now, max) < max };
    });
    const held = places.every(({ hasRoom }) => hasRoom);
    if (held) this.#checkRoom(places.filter(({ isHeld }) => !isHeld).length, now);
    const running: { -readonly [Limit in keyof InFlight]: number } = {};
    for (const { limit, key, isHeld } of places) {
      // A slot that is lost in one limit stays in the other: its request goes on.
      if (held || isHeld) this.#set(key, slot.token, now + leaseMs);
      running[limit] = this.#byLimit.get(key)?.size ?? 0;
    }
    return { held, running };
  }

  release(slot: Slot): void {
    for (const { key } of placesOf(slot)) this.#delete(key, slot.token);
  }

  #isHeld(key: string, token: string, now: number): boolean {
    const ends = this.#byLimit.get(key)?.get(token);
    if (ends === undefined) return false;
    if (ends <= now) this.#delete(key, token);
    return ends > now;
  }

  /** The number of slots of a limit. All that are over are removed if that makes room. */
  #running(key: string, now: number, max: number): number {
    const tokens = this.#byLimit.get(key);
    if (tokens === undefined) return 0;
    for (const [token, ends] of tokens) {
      // With leases of several lengths, a slot further on can be over before the first one.
      if (ends > now && tokens.size < max) break;
      if (ends <= now) this.#delete(key, token);
    }
    return tokens.size;
  }

  /** @throws StoreFullError */
  #checkRoom(slots: number, now: number): void {
    if (this.#size + slots <= this.#maxSlots) return;
    let left = SEARCHED_WHEN_FULL;
    for (const key of [...this.#byLimit.keys()]) {
      if (left-- === 0) break;
      this.#running(key, now, 0);
    }
    if (this.#size + slots > this.#maxSlots) throw new StoreFullError(this.#maxSlots, 'requests in flight');
  }

  #set(key: string, token: string, ends: number): void {
    this.#delete(key, token);
    const tokens: Tokens = this.#byLimit.get(key) ?? new Map();
    tokens.set(token, ends);
    this.#byLimit.set(key, tokens);
    this.#size++;
  }

  #delete(key: string, token: string): void {
    const tokens = this.#byLimit.get(key);
    if (tokens?.delete(token) !== true) return;
    this.#size--;
    if (tokens.size === 0) this.#byLimit.delete(key);
  }
}

/** The limits that count a slot, in the order of checking. */
function placesOf({ account, route, most }: Slot) {
  return IN_FLIGHT_LIMITS.flatMap((limit) => {
    const max = most[limit];
    if (max === undefined) return [];
    // The length in front determines the end of the account.
    return [{ limit, key: limit === 'route' ? `${account.length}:${account}${route}` : `:${account}`, max }];
  });
}
