import type { StoreCall } from '../../core/store-channel.ts';
import type { WindowSet } from '../../core/window-set.ts';

/** A call of `lease` that waits for its result. */
export interface WaitingLease {
  readonly requests: number;
  /** How many of its requests were granted. Set before its decision is there. */
  granted: number;
}

/** One request for a decision, or for the counters. */
export interface CheckRequest {
  /** Names of the records that it touches. The one of its (account, route) is the first. */
  readonly keys: readonly string[];
  readonly account: string;
  readonly route: string;
  readonly windowSet: WindowSet;
  readonly cost: number;
  /** The call as it is published; undefined if nothing listens. */
  readonly call?: StoreCall | undefined;
  /** Set if it is about the requests of a lease, and not about one request. */
  readonly lease?: WaitingLease | undefined;
}

/** A request that waits for its result. */
interface WaitingRequest<Result> {
  readonly call: StoreCall | undefined;
  readonly lease?: WaitingLease | undefined;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/** Equal requests that follow one another. Each waits for its own result. */
export interface Check<Result> extends Pick<CheckRequest, 'keys' | 'account' | 'route'> {
  readonly waiting: WaitingRequest<Result>[];
}

/** The number of requests of a check, those of leases included. */
export function requestsOf({ waiting }: Check<never>): number {
  let requests = 0;
  for (const { lease } of waiting) requests += lease?.requests ?? 1;
  return requests;
}

/** Checks with the same window set and cost, which are sent in one call. */
export interface CheckBatch<Result> {
  readonly windowSet: WindowSet;
  readonly cost: number;
  readonly checks: Check<Result>[];
  /** Its position among the batches of the turn. */
  readonly position: number;
}

/** A check, and its batch. */
interface BatchedCheck<Result> {
  readonly check: Check<Result>;
  readonly batch: CheckBatch<Result>;
}

/** Options of {@link CheckBatcher}. */
export interface CheckBatcherOptions<Result> {
  /** Whether a call can only touch the records of one account. */
  readonly oneAccountPerBatch: boolean;
  /** Sends the batches of a turn. Called at the end of the turn; the order of the batches matters. */
  readonly send: (batches: readonly CheckBatch<Result>[]) => void;
}

/** Most records per call. The server does nothing else during a call, and each record takes it about 4 µs. */
const MAX_CHECKS = 32;
/** Fewer records are not worth a separate call. */
const MIN_CHECKS = 4;

/**
 * Collects the requests of one turn of the event loop. Requests with the same window set and cost are sent together;
 * equal requests are sent once, with their number. Requests that touch the same counters keep their order, so that the
 * decisions are the same as if each request had been sent by itself.
 */
export class CheckBatcher<Result> {
  readonly #options: CheckBatcherOptions<Result>;
  #batches: CheckBatch<Result>[] = [];
  /**
   * For each window set and cost (and account, if a batch has only one), the last batch. Further checks can join it.
   */
  #joinable = new Map<WindowSet, Map<string, CheckBatch<Result>>>();
  /** For each record, the last check that touches it. */
  #last = new Map<string, BatchedCheck<Result>>();

  constructor(options: CheckBatcherOptions<Result>) {
    this.#options = options;
  }

  /** Resolves with the result. */
  add({ keys, account, route, windowSet, cost, call, lease }: CheckRequest): Promise<Result> {
    if (this.#batches.length === 0) setImmediate(() => this.#endTurn());
    let last: BatchedCheck<Result> | undefined;
    let minPosition = 0;
    let canJoin = true;
    for (const key of keys) {
      const lastOfKey = this.#last.get(key);
      canJoin &&= lastOfKey !== undefined && (last === undefined || last === lastOfKey);
      last = lastOfKey;
      minPosition = Math.max(minPosition, lastOfKey?.batch.position ?? 0);
    }
    if (canJoin && last?.check.keys[0] === keys[0] && last?.batch.windowSet === windowSet && last.batch.cost === cost) {
      return wait(last.check, call, lease);
    }
    const batch = this.#batchFor(account, windowSet, cost, minPosition);
    const check: Check<Result> = { keys, account, route, waiting: [] };
    batch.checks.push(check);
    const batched = { check, batch };
    for (const key of keys) this.#last.set(key, batched);
    return wait(check, call, lease);
  }

  /** @param minPosition the batch must not come before this position */
  #batchFor(account: string, windowSet: WindowSet, cost: number, minPosition: number): CheckBatch<Result> {
    let ofWindowSet = this.#joinable.get(windowSet);
    if (ofWindowSet === undefined) {
      ofWindowSet = new Map();
      this.#joinable.set(windowSet, ofWindowSet);
    }
    const kind = this.#options.oneAccountPerBatch ? `${cost}:${account}` : String(cost);
    let batch = ofWindowSet.get(kind);
    if (batch === undefined || batch.position < minPosition) {
      batch = { windowSet, cost, checks: [], position: this.#batches.length };
      this.#batches.push(batch);
      ofWindowSet.set(kind, batch);
    }
    return batch;
  }

  #endTurn(): void {
    const batches = this.#batches;
    this.#batches = [];
    this.#joinable = new Map();
    this.#last = new Map();
    this.#options.send(batches.flatMap(split));
  }
}

/**
 * Splits a batch into calls of a quarter of its checks each, within bounds. While the server decides one call, this
 * process handles the reply to another. With a single call each side would wait for the other; many calls would cost
 * too much.
 */
function split<Result>(batch: CheckBatch<Result>): CheckBatch<Result>[] {
  const { checks } = batch;
  const size = Math.max(MIN_CHECKS, Math.min(MAX_CHECKS, Math.ceil(checks.length / 4)));
  if (checks.length <= size) return [batch];
  const calls: CheckBatch<Result>[] = [];
  for (let from = 0; from < checks.length; from += size) {
    calls.push({ ...batch, checks: checks.slice(from, from + size) });
  }
  return calls;
}

function wait<Result>(
  { waiting }: Check<Result>,
  call: StoreCall | undefined,
  lease: WaitingLease | undefined,
): Promise<Result> {
  return new Promise((resolve, reject) => waiting.push({ call, lease, resolve, reject }));
}
