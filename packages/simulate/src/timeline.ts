import { getOrCreate } from './get-or-create.ts';
import type { TimelineBucket } from './report.ts';

const MAX_BUCKETS = 240;
/** Widths that readers of a clock expect, in milliseconds. Past the last one they double. */
const WIDTHS = [
  1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000, 86_400_000,
];

interface Bucket {
  requests: number;
  current: number;
  candidate: number;
}

/** Counts requests by time. Its buckets become wider as the trace becomes longer. */
export class Timeline {
  #bucketMs = WIDTHS[0] as number;
  /** By the number of the bucket since 1970. */
  #buckets = new Map<number, Bucket>();
  #first = Number.POSITIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;

  add(at: number, rejectedByCurrent: boolean, rejectedByCandidate: boolean): void {
    if (at < this.#first) this.#first = at;
    if (at > this.#last) {
      this.#last = at;
      while (this.#last - this.#first >= MAX_BUCKETS * this.#bucketMs) this.#widen();
    }
    const number = Math.floor(at / this.#bucketMs);
    const bucket = getOrCreate(this.#buckets, number, () => ({ requests: 0, current: 0, candidate: 0 }));
    bucket.requests++;
    if (rejectedByCurrent) bucket.current++;
    if (rejectedByCandidate) bucket.candidate++;
  }

  /** Without gaps, from the first to the last. */
  list(): { readonly bucketMs: number; readonly buckets: TimelineBucket[] } {
    const bucketMs = this.#bucketMs;
    const buckets: TimelineBucket[] = [];
    if (this.#buckets.size === 0) return { bucketMs, buckets };
    const [from, to] = [Math.floor(this.#first / bucketMs), Math.floor(this.#last / bucketMs)];
    for (let number = from; number <= to; number++) {
      const { requests = 0, current = 0, candidate = 0 } = this.#buckets.get(number) ?? {};
      buckets.push({ at: number * bucketMs, requests, rejectedByCurrent: current, rejectedByCandidate: candidate });
    }
    return { bucketMs, buckets };
  }

  #widen(): void {
    const before = this.#bucketMs;
    // A width that the one before divides, so that no bucket has to be cut.
    this.#bucketMs = WIDTHS.find((width) => width > before && width % before === 0) ?? before * 2;
    const buckets = new Map<number, Bucket>();
    for (const [number, { requests, current, candidate }] of this.#buckets) {
      const wide = Math.floor((number * before) / this.#bucketMs);
      const bucket = buckets.get(wide);
      if (bucket === undefined) buckets.set(wide, { requests, current, candidate });
      else {
        bucket.requests += requests;
        bucket.current += current;
        bucket.candidate += candidate;
      }
    }
    this.#buckets = buckets;
  }
}
