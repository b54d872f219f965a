import { LRUCache } from 'lru-cache';

/** An account's records: the address of the first, or the addresses by the number of their route. */
export type Held = number | Map<number, number>;

/**
 * Most accounts that one cache should hold. A JavaScript map grows and shrinks by building itself anew in one go, which at a million
 * entries stops the process for 50 to 200 ms; at this size it takes 1 or 2.
 */
const ACCOUNTS_PER_SHARD = 32_768;
/** Up to this many one cache does, twice as slow to build anew, and no choice to make. */
const UNSHARDED = 65_536;
/** Room beyond a fair share, for accounts do not spread evenly. */
const SLACK = 1.1;
/** Characters of an account, evenly spread over it, that choose its shard. Where they are all alike, accounts overflow into the next. */
const HASHED = 16;

/** lru-cache writes into the options of a call; one object for all of them saves an allocation a look-up. */
const OPTIONS = { allowStale: true };

/** One cache, and whether an account that belongs here had to go to the next one for want of room. */
interface Shard {
  readonly cache: LRUCache<string, Held>;
  overflowed: boolean;
}

/**
 * What is held for each account, ordered by when one of its windows last began: what stands at the old end is what is most likely over.
 * lru-cache never evicts by itself here, since there is room for as many accounts as the store may have records (S18).
 */
export class Accounts {
  readonly #shards: Shard[];
  /** The only cache, where there is one: most stores are small, and need not ask which. */
  readonly #only: LRUCache<string, Held> | undefined;
  #sweptShard = 0;

  constructor(most: number) {
    const count = most <= UNSHARDED ? 1 : Math.ceil(most / ACCOUNTS_PER_SHARD);
    const max = count === 1 ? most : Math.ceil((most / count) * SLACK);
    this.#shards = Array.from({ length: count }, () => ({ cache: new LRUCache({ max }), overflowed: false }));
    this.#only = count === 1 ? (this.#shards[0] as Shard).cache : undefined;
  }

  get(account: string): Held | undefined {
    if (this.#only !== undefined) return this.#only.peek(account, OPTIONS);
    const { cache, overflowed } = this.#shards[this.#home(account)] as Shard;
    const held = cache.peek(account, OPTIONS);
    return held === undefined && overflowed ? this.#cacheOf(account)?.peek(account, OPTIONS) : held;
  }

  set(account: string, held: Held): void {
    (this.#cacheOf(account) ?? this.#cacheWithRoom(account)).set(account, held);
  }

  delete(account: string): void {
    this.#cacheOf(account)?.delete(account);
  }

  /** Moves the account to the new end of the order. */
  touch(account: string): void {
    this.#cacheOf(account)?.get(account, OPTIONS);
  }

  /** Up to `most` accounts from the old end; of another shard with every call. */
  oldest(most: number): string[] {
    const accounts: string[] = [];
    // As many shards as it takes, so that a large `most` sees the whole store.
    for (let tried = 0; tried < this.#shards.length && accounts.length < most; tried++) {
      this.#sweptShard = (this.#sweptShard + 1) % this.#shards.length;
      for (const account of (this.#shards[this.#sweptShard] as Shard).cache.rkeys()) {
        if (accounts.push(account) >= most) break;
      }
    }
    return accounts;
  }

  /** The cache that holds the account. */
  #cacheOf(account: string): LRUCache<string, Held> | undefined {
    const count = this.#shards.length;
    for (let i = this.#home(account), tried = 0; tried < count; i = (i + 1) % count, tried++) {
      const { cache, overflowed } = this.#shards[i] as Shard;
      if (cache.has(account)) return cache;
      if (!overflowed) return undefined;
    }
    return undefined;
  }

  /** The account's own cache, or the next with room: there is one, since all together have more room than the store has records. */
  #cacheWithRoom(account: string): LRUCache<string, Held> {
    let i = this.#home(account);
    for (;;) {
      const shard = this.#shards[i] as Shard;
      if (shard.cache.size < shard.cache.max) return shard.cache;
      shard.overflowed = true;
      i = (i + 1) % this.#shards.length;
    }
  }

  #home(account: string): number {
    const { length } = account;
    let hash = length;
    for (let i = 1; i <= HASHED; i++) hash = Math.imul(hash ^ account.charCodeAt((length * i - 1) >> 4), 0x01000193);
    // The last character has reached only the low bits: mixed until every bit depends on every character.
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return ((hash ^ (hash >>> 16)) >>> 0) % this.#shards.length;
  }
}
