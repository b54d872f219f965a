import { monotonicClock } from '../../core/clock.ts';
import type { Decision, WindowStatus } from '../../core/decision.ts';
import type { LeaseGrant } from '../../core/ports.ts';
import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';
import { type Check, type CheckRequest, requestsOf } from '../shared/check-batcher.ts';
import { CheckDecider, type CheckDeciderParts, type FoundBlock, type Reading } from '../shared/check-decider.ts';
import { traceCall } from '../shared/store-tracer.ts';
import { CallQueue, type QueuedItem } from './call-queue.ts';
import type { Row } from './database.ts';
import { PostgresSetupError } from './errors.ts';
import { type Layout, layoutOf } from './layout.ts';
import { arrayOf, digest, fromText } from './names.ts';
import type { Server } from './server.ts';

/** The parts of a store. */
export interface LimitStoreParts extends CheckDeciderParts {
  readonly server: Server;
  /** Whether charges wait until they are on the disk, as a parameter. */
  readonly durable: 'true' | 'false';
}

/** Equal requests that wait for one call. */
interface QueuedCheck<Result> extends Check<Result>, QueuedItem {
  readonly keys: readonly string[];
  readonly windowSet: WindowSet;
  readonly cost: number;
}

const CONSUME = `select now::text as now, counters, blocks from headgate.consume_1($1::text::uuid[], $2::text::uuid[],
  $3::text::boolean[], $4::text::boolean[], $5::text::bigint[], $6::text::integer[], $7::text::integer[],
  $8::text::integer[], $9::text::integer, $10::text::integer[], $11::text::bigint[], $12::text::bigint[],
  $13::text::bigint, $14::text::bigint, $15::text::boolean)`;

/** Calls that decide, under way at the same time: a busy store leaves the other connections of the pool free. */
const MAX_CALLS = 3;
/** In place of a number of requests: the function only reads, or it charges also what does not fit. */
const READ = 0;
const FORCED = -1;
/** Most requests per check: they are an integer of PostgreSQL. */
const MAX_REQUESTS = 2_147_483_647;

/**
 * Sends checks to PostgreSQL, those that wait at the same time together, and decides the requests that wait for them.
 * Why the rule is applied on both sides: see `stores/redis/check-calls.ts`.
 */
export class CheckCalls {
  readonly decider: CheckDecider;
  readonly #parts: LimitStoreParts;
  readonly #decisions: CallQueue<QueuedCheck<Decision>>;
  readonly #readings: CallQueue<QueuedCheck<Reading>>;
  /** Calls that were sent. */
  count = 0;
  /** Decisions that shared another decision's call. */
  coalesced = 0;

  constructor(parts: LimitStoreParts) {
    this.#parts = parts;
    this.decider = new CheckDecider(parts);
    const { maxWaitMs } = parts.server;
    this.#decisions = new CallQueue({
      maxCalls: MAX_CALLS,
      maxWaitMs,
      send: (checks) => this.#decide(checks),
      giveUp: (checks) => this.#failOver(checks, parts.server.tooLate()),
    });
    this.#readings = new CallQueue({
      maxCalls: 1,
      maxWaitMs,
      send: (checks) => this.#read(checks),
      giveUp: (checks) => rejectAll(checks, parts.server.tooLate()),
    });
  }

  /** Decides one request. */
  decide(account: string, route: string, windowSet: WindowSet, cost: number, pair: string): Promise<Decision> {
    return traceCall('limits', 'consume', this.#parts.server.breaker, (call) =>
      add(this.#decisions, { keys: keysOf(account, windowSet, pair), account, route, windowSet, cost, call }),
    );
  }

  /** Decides so many equal requests, one after the other. */
  async lease(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    requests: number,
    pair: string,
  ): Promise<LeaseGrant> {
    const lease = { requests, granted: 0 };
    const decision = await traceCall('limits', 'lease', this.#parts.server.breaker, (call) =>
      add(this.#decisions, { keys: keysOf(account, windowSet, pair), account, route, windowSet, cost, call, lease }),
    );
    return { decision, granted: lease.granted };
  }

  /**
   * Reads the counters of one account and route, and the server's time.
   * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError
   */
  read(account: string, route: string, windowSet: WindowSet, pair: string): Promise<Reading> {
    return traceCall('limits', 'peek', this.#parts.server.breaker, (call) =>
      add(this.#readings, { keys: [pair], account, route, windowSet, cost: 1, call }),
    );
  }

  /**
   * Charges one account and route, whether the cost fits or not. The failure policy says what happens in an outage.
   * @throws PostgresSetupError, or the errors of the failure policy
   */
  charge(account: string, route: string, windowSet: WindowSet, cost: number): Promise<readonly WindowStatus[]> {
    const { breaker } = this.#parts.server;
    return traceCall('limits', 'charge', breaker, (call) =>
      this.decider.charge({ account, route, windowSet, cost, call }, async () => {
        const addedAt = monotonicClock.now();
        const check: QueuedCheck<never> = { keys: [], account, route, windowSet, cost, addedAt, waiting: [] };
        const { now, found } = await this.#consume([check], () => FORCED);
        return { now, counters: found[0] as Counters };
      }),
    );
  }

  /** Sends checks, and decides their requests. */
  async #decide(checks: readonly QueuedCheck<Decision>[]): Promise<void> {
    this.coalesced += checks.reduce((sum, { waiting }) => sum + waiting.length, -1);
    try {
      const sentAt = monotonicClock.now();
      const { now, found } = await this.#consume(checks, requestsOf);
      const times = { now, sentAt, receivedAt: monotonicClock.now() };
      for (const [i, check] of checks.entries())
        this.decider.decide(check, check, found[i] as Counters | FoundBlock, times);
    } catch (error) {
      this.#failOver(checks, error);
    }
  }

  /** Sends checks that only read. */
  async #read(checks: readonly QueuedCheck<Reading>[]): Promise<void> {
    try {
      const { now, found } = await this.#consume(checks, () => READ);
      for (const [i, { waiting }] of checks.entries())
        for (const { resolve } of waiting) resolve({ now, counters: found[i] as Counters });
    } catch (error) {
      rejectAll(checks, error);
    }
  }

  /** The failure policy decides, unless the set-up is wrong. */
  #failOver(checks: readonly QueuedCheck<Decision>[], error: unknown): void {
    if (error instanceof PostgresSetupError) rejectAll(checks, error);
    else for (const check of checks) this.decider.failOver(check, check, error);
  }

  /** @param numberOf the number of requests of a check, or {@link READ} or {@link FORCED} */
  async #consume<Result>(
    checks: readonly QueuedCheck<Result>[],
    numberOf: (check: QueuedCheck<Result>) => number,
  ): Promise<ConsumeReply> {
    const requests = checks.map(numberOf);
    this.count++;
    const values = valuesOf(checks, requests);
    const { server, durable } = this.#parts;
    const left = server.timeLeft((checks[0] as QueuedCheck<Result>).addedAt);
    // The circuit breaker also runs the reading, because an invalid reply is a failure like any other.
    const parameters = [...values, server.now(), String(left), durable];
    return server.query(CONSUME, parameters, left, ([row]) => readConsumeReply(row, checks));
  }
}

/** Adds a request to the waiting requests that it equals, or else to the queue. Resolves with its result. */
function add<Result>(
  queue: CallQueue<QueuedCheck<Result>>,
  { keys, account, route, windowSet, cost, call, lease }: CheckRequest,
): Promise<Result> {
  let check = queue.last(keys);
  const isEqual =
    check?.windowSet === windowSet &&
    check.cost === cost &&
    (lease === undefined || requestsOf(check) + lease.requests <= MAX_REQUESTS);
  if (check === undefined || !isEqual) {
    check = { keys, account, route, windowSet, cost, addedAt: monotonicClock.now(), waiting: [] };
    queue.add(check);
  }
  const { waiting } = check;
  return new Promise((resolve, reject) => waiting.push({ call, lease, resolve, reject }));
}

/** Names the rows of a check. */
export function keysOf(account: string, windowSet: WindowSet, pair: string): readonly string[] {
  return layoutOf(windowSet).shared ? [pair, digest(account)] : [pair];
}

function rejectAll(checks: readonly Check<never>[], error: unknown): void {
  for (const { waiting } of checks) {
    for (const { call, reject } of waiting) {
      if (call !== undefined) call.error = error;
      reject(error);
    }
  }
}

/** The parameters of `consume_1` before the time. */
function valuesOf(checks: readonly QueuedCheck<never>[], requests: readonly number[]): string[] {
  const sets = new Map<WindowSet, number>();
  const starts = [1];
  const names: string[] = [];
  const maxes: string[] = [];
  const setOf = (windowSet: WindowSet, layout: Layout): number => {
    let set = sets.get(windowSet);
    if (set === undefined) {
      set = sets.size + 1;
      sets.set(windowSet, set);
      names.push(...layout.names);
      maxes.push(...layout.maxes);
      starts.push(names.length + 1);
    }
    return set;
  };
  let size = 0;
  const rows = checks.map(({ account, route, windowSet, cost }, i) => {
    const layout = layoutOf(windowSet);
    const out = size + 1;
    size += layout.names.length * SLOTS_PER_WINDOW;
    const { own, shared } = layout;
    return [digest(account), digest(route), own, shared, cost, requests[i], setOf(windowSet, layout), out];
  });
  const columns = (rows[0] as unknown[]).map((_, i) => arrayOf(rows.map((row) => row[i] as string)));
  return [...columns, String(size), arrayOf(starts), arrayOf(names), arrayOf(maxes)];
}

interface ConsumeReply {
  /** Milliseconds on the server's clock. */
  readonly now: number;
  /** Of each check, the counters before its requests, or the block that rejects them. */
  readonly found: readonly (Counters | FoundBlock)[];
}

/**
 * Reads the row of `consume_1`.
 * @throws TypeError for anything that the function cannot return */
function readConsumeReply(row: Row | undefined, checks: readonly QueuedCheck<never>[]): ConsumeReply {
  const now = integerOf(row?.now);
  const numbers = String(row?.counters ?? '').split(',');
  const blocks: readonly unknown[] = typeof row?.blocks === 'string' ? JSON.parse(row.blocks) : [];
  let at = 0;
  const found = checks.map(({ windowSet }, i) => {
    const from = at;
    at += windowSet.windows.length * SLOTS_PER_WINDOW;
    const block = blocks[i];
    return Array.isArray(block) ? readBlock(block) : readCounters(numbers, from, at);
  });
  return { now, found };
}

function readCounters(numbers: readonly string[], from: number, to: number): Counters {
  const counters = new Float64Array(to - from);
  for (let i = from; i < to; i += SLOTS_PER_WINDOW) {
    const isMissing = (numbers[i] ?? '') === '';
    counters[i - from] = isMissing ? NEVER : integerOf(numbers[i]);
    counters[i - from + 1] = isMissing ? 0 : integerOf(numbers[i + 1]);
  }
  return counters;
}

function readBlock([forMs, reason, isOfAccount]: readonly unknown[]): FoundBlock {
  const block = { forMs: integerOf(forMs), reason: fromText(reason as string | null) };
  return { block, isOfAccount: isOfAccount === true };
}

/** @throws TypeError */
export function integerOf(value: unknown): number {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (Number.isSafeInteger(number)) return number as number;
  throw new TypeError(`unexpected reply of PostgreSQL: ${JSON.stringify(value)?.slice(0, 200)}`);
}
