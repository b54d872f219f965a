/**
 * Entries that one shard should hold. A JavaScript map grows and shrinks by rebuilding itself in one go, which stops
 * the process for 50 to 200 ms at a million entries. Entries spread evenly, so many shards rebuild at about the same
 * time: with four times as many entries per shard, several rebuilds in one turn still took 15 to 20 ms.
 */
const ENTRIES_PER_SHARD = 8_192;
/** Up to this many entries, one map is enough: it takes twice as long to rebuild, but no key has to be hashed. */
const MAX_UNSHARDED = 65_536;
/**
 * Most characters of a key, evenly spread over it, that choose its shard. Keys with the same characters there
 * share a shard, which costs no more than its rebuilding.
 */
const MAX_HASHED = 16;

/** A map with string keys that stays quick to grow and shrink, up to millions of entries. */
export class ShardedMap<Value> {
  readonly #shards: readonly Map<string, Value>[];
  /** The only shard, if there is only one. Most stores are small, and then no key has to be hashed. */
  readonly #only: Map<string, Value> | undefined;
  /** Position of {@link nextKey}: index of its shard, and an iterator over the keys of that shard. */
  #roundShard = 0;
  #round: Iterator<string> | undefined;

  /** @param maxEntries most entries that the map will hold */
  constructor(maxEntries: number) {
    const count = maxEntries <= MAX_UNSHARDED ? 1 : Math.ceil(maxEntries / ENTRIES_PER_SHARD);
    this.#shards = Array.from({ length: count }, () => new Map());
    this.#only = count === 1 ? this.#shards[0] : undefined;
  }

  get(key: string): Value | undefined {
    return (this.#only ?? this.#shardOf(key)).get(key);
  }

  set(key: string, value: Value): void {
    this.#shardOf(key).set(key, value);
  }

  delete(key: string): void {
    this.#shardOf(key).delete(key);
  }

  /** Returns the keys one by one, round after round. Undefined at the end of each shard, and if the map is empty. */
  nextKey(): string | undefined {
    // Created only when it is used: an iterator that is never advanced keeps every table that the map has outgrown.
    this.#round ??= this.#shardAt(this.#roundShard).keys();
    const { done, value } = this.#round.next();
    if (!done) return value;
    this.#roundShard = (this.#roundShard + 1) % this.#shards.length;
    this.#round = undefined;
    return undefined;
  }

  /** Number of shards. A key is always in the same one. */
  get shards(): number {
    return this.#shards.length;
  }

  /** The values of a shard, in the order in which their keys were added. */
  valuesOf(shard: number): Iterable<Value> {
    return this.#shardAt(shard).values();
  }

  #shardAt(index: number): Map<string, Value> {
    return this.#shards[index] as Map<string, Value>;
  }

  #shardOf(key: string): Map<string, Value> {
    if (this.#only !== undefined) return this.#only;
    const { length } = key;
    const isShort = length <= MAX_HASHED;
    let hash = length;
    for (let i = isShort ? length : MAX_HASHED; i > 0; i--) {
      hash = Math.imul(hash ^ key.charCodeAt(isShort ? i - 1 : (length * i - 1) >> 4), 0x01000193);
    }
    // So far the low bits depend only on the low bits of the characters. These are the same in "a" and "A".
    return this.#shardAt(((hash ^ (hash >>> 15)) >>> 0) % this.#shards.length);
  }
}
