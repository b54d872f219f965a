/** Figures that are counted per second. */
export const COUNTED = [
  'accepted',
  'rejected',
  'degraded',
  'unlimited',
  'replayed',
  'refused',
  'provider_rejected',
] as const;
export type Counted = (typeof COUNTED)[number];

/** One second. */
export type Second = Readonly<Record<Counted, number>> & {
  /** Begin of the second, in milliseconds since 1970. */
  readonly atMs: number;
  /** Half of the calls of the store took at most so long, in milliseconds; undefined without a call. */
  readonly p50: number | undefined;
  readonly p99: number | undefined;
};

/** Seconds that are stored. */
export const SERIES_SECONDS = 900;
/** Durations are counted by powers of two of a microsecond, so a figure is at most twice the real one. */
const BUCKETS = 24;

/** Figures of each of the last 15 minutes' seconds, in fixed memory. */
export class Series {
  readonly #seconds = new Float64Array(SERIES_SECONDS);
  readonly #counts = new Uint32Array(SERIES_SECONDS * COUNTED.length);
  readonly #durations = new Uint32Array(SERIES_SECONDS * BUCKETS);

  count(what: Counted, nowMs: number): void {
    (this.#counts[this.#rowOf(nowMs) * COUNTED.length + COUNTED.indexOf(what)] as number)++;
  }

  /** @param seconds how long a call of the store took */
  time(seconds: number, nowMs: number): void {
    const bucket = Math.min(BUCKETS - 1, 32 - Math.clz32(seconds * 1_000_000));
    (this.#durations[this.#rowOf(nowMs) * BUCKETS + bucket] as number)++;
  }

  /** The last seconds, the oldest first. The current one is not included, because it is not over. */
  list(seconds: number, nowMs: number): Second[] {
    const now = Math.floor(nowMs / 1_000);
    const length = Math.min(seconds, SERIES_SECONDS - 1);
    return Array.from({ length }, (_, i) => this.#second(now - length + i));
  }

  /** The average of the last seconds, per second. */
  average(seconds: number, nowMs: number): Record<Counted, number> {
    const list = this.list(seconds, nowMs);
    const averages = COUNTED.map((name) => [name, list.reduce((sum, each) => sum + each[name], 0) / list.length]);
    return Object.fromEntries(averages) as Record<Counted, number>;
  }

  #second(second: number): Second {
    const row = second % SERIES_SECONDS;
    const isKnown = this.#seconds[row] === second;
    const counts = COUNTED.map((name, i) => [name, isKnown ? this.#counts[row * COUNTED.length + i] : 0]);
    const durations = this.#durations.subarray(row * BUCKETS, (row + 1) * BUCKETS);
    return {
      atMs: second * 1_000,
      ...(Object.fromEntries(counts) as Record<Counted, number>),
      p50: isKnown ? quantile(durations, 0.5) : undefined,
      p99: isKnown ? quantile(durations, 0.99) : undefined,
    };
  }

  /** The row of the current second. If an earlier second used the row, the row is cleared. */
  #rowOf(nowMs: number): number {
    const second = Math.floor(nowMs / 1_000);
    const row = second % SERIES_SECONDS;
    if (this.#seconds[row] !== second) {
      this.#seconds[row] = second;
      this.#counts.fill(0, row * COUNTED.length, (row + 1) * COUNTED.length);
      this.#durations.fill(0, row * BUCKETS, (row + 1) * BUCKETS);
    }
    return row;
  }
}

/** The upper bound of the quantile's bucket, in milliseconds. */
function quantile(counts: Uint32Array, share: number): number | undefined {
  let left = Math.ceil(counts.reduce((sum, count) => sum + count, 0) * share);
  if (left === 0) return undefined;
  for (const [bucket, count] of counts.entries()) {
    left -= count;
    if (left <= 0) return 2 ** bucket / 1_000;
  }
  return undefined;
}
