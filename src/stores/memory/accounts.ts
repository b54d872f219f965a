/** An account's records: the address of the first, or the addresses by the number of their route. */
export type Held = number | Map<number, number>;

/**
 * Accounts that one map should hold. A JavaScript map grows and shrinks by building itself anew in one go, which at a million entries stops the
 * process for 50 to 200 ms. Accounts spread evenly, so that many maps do it at about the same time: at four times this size some of them in one
 * turn still held it for 15 to 20.
 */
const ACCOUNTS_PER_MAP = 8_192;
/** Up to this many one map does, twice as slow to build anew, and no choice to make. */
const UNDIVIDED = 65_536;
/** Characters of an account, evenly spread over it, that choose its map. Accounts that are all alike in them share one, which costs no more than its growing. */
const HASHED = 16;

/** What is held for each account, and a hand that goes round all of them. */
export class Accounts {
  readonly #maps: readonly Map<string, Held>[];
  /** The only map, where there is one: most stores are small, and need not ask which. */
  readonly #only: Map<string, Held> | undefined;
  /** Where the hand stands: in this map, before the next of its keys. */
  #handsMap = 0;
  #hand: Iterator<string>;

  constructor(most: number) {
    const count = most <= UNDIVIDED ? 1 : Math.ceil(most / ACCOUNTS_PER_MAP);
    this.#maps = Array.from({ length: count }, () => new Map());
    this.#only = count === 1 ? this.#maps[0] : undefined;
    this.#hand = this.#mapAt(0).keys();
  }

  get(account: string): Held | undefined {
    return (this.#only ?? this.#mapOf(account)).get(account);
  }

  set(account: string, held: Held): void {
    this.#mapOf(account).set(account, held);
  }

  delete(account: string): void {
    this.#mapOf(account).delete(account);
  }

  /** The account that the hand comes to next; undefined at the end of each map, and where none is held. */
  next(): string | undefined {
    const { done, value } = this.#hand.next();
    if (!done) return value;
    this.#handsMap = (this.#handsMap + 1) % this.#maps.length;
    this.#hand = this.#mapAt(this.#handsMap).keys();
    return undefined;
  }

  #mapAt(index: number): Map<string, Held> {
    return this.#maps[index] as Map<string, Held>;
  }

  #mapOf(account: string): Map<string, Held> {
    if (this.#only !== undefined) return this.#only;
    const { length } = account;
    let hash = length;
    for (let i = 1; i <= HASHED; i++) hash = Math.imul(hash ^ account.charCodeAt((length * i - 1) >> 4), 0x01000193);
    // The last character has reached only the low bits: mixed until every bit depends on every character.
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return this.#mapAt(((hash ^ (hash >>> 16)) >>> 0) % this.#maps.length);
  }
}
