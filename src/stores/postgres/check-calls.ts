import { StoreUnavailableError } from '../../base/errors.ts';
import { monotonicClock } from '../../core/clock.ts';
import type { Decision } from '../../core/decision.ts';
import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';
import type { Check } from '../shared/check-batcher.ts';
import { CheckDecider, type CheckDeciderParts, type FoundBlock } from '../shared/check-decider.ts';
import { traceCall } from '../shared/store-tracer.ts';
import { CheckQueue, type QueuedCheck } from './check-queue.ts';
import type { Row } from './client.ts';
import { NotSentError, PostgresSetupError } from './errors.ts';
import { type Layout, layoutOf } from './layout.ts';
import { arrayOf, digest, fromText } from './names.ts';
import type { Server } from './server.ts';

/** The parts of a store. */
export interface LimitStoreParts extends CheckDeciderParts {
  readonly server: Server;
  /** Whether charges wait until they are on the disk, as a parameter. */
  readonly durable: 'true' | 'false';
}

const CONSUME = `select now::text as now, counters, blocks from headgate.consume_1($1::text::uuid[], $2::text::uuid[],
  $3::text::boolean[], $4::text::boolean[], $5::text::bigint[], $6::text::integer[], $7::text::integer[],
  $8::text::integer[], $9::text::integer, $10::text::integer[], $11::text::bigint[], $12::text::bigint[],
  $13::text::bigint, $14::text::bigint, $15::text::boolean)`;

/**
 * Sends checks to PostgreSQL, those that wait at the same time together, and decides the requests that wait for them.
 * Why the rule is applied on both sides: see `stores/redis/check-calls.ts`.
 */
export class CheckCalls {
  readonly decider: CheckDecider;
  readonly #parts: LimitStoreParts;
  readonly #queue: CheckQueue;
  /** Calls that were sent. */
  count = 0;
  /** Decisions that shared another decision's call. */
  coalesced = 0;

  constructor(parts: LimitStoreParts) {
    const { server } = parts;
    this.#parts = parts;
    this.decider = new CheckDecider(parts);
    this.#queue = new CheckQueue({
      // The rest is for the call itself.
      maxWaitMs: server.deadlineMs / 2,
      send: (checks) => this.#decide(checks),
      giveUp: (checks) => {
        const cause = new NotSentError(new Error(`${server.deadlineMs / 2} ms were not enough for the earlier calls`));
        server.outages.failed(cause);
        this.#failOver(checks, new StoreUnavailableError(cause, { sent: false }));
      },
    });
  }

  /** Decides one request. */
  decide(account: string, route: string, windowSet: WindowSet, cost: number, pair: string): Promise<Decision> {
    const keys = layoutOf(windowSet).shared ? [pair, digest(account)] : [pair];
    return traceCall('limits', 'consume', this.#parts.server.breaker, (call) =>
      this.#queue.add({ keys, account, route, windowSet, cost, call }),
    );
  }

  /** Sends checks, and decides their requests. */
  async #decide(checks: readonly QueuedCheck[]): Promise<void> {
    try {
      const sentAt = monotonicClock.now();
      const { now, found } = await this.#consume(checks);
      const times = { now, sentAt, receivedAt: monotonicClock.now() };
      for (const [i, check] of checks.entries())
        this.decider.decide(check, check, found[i] as Counters | FoundBlock, times);
    } catch (error) {
      this.#failOver(checks, error);
    }
  }

  /** The failure policy decides, unless the set-up is wrong. */
  #failOver(checks: readonly QueuedCheck[], error: unknown): void {
    for (const check of checks) {
      if (error instanceof PostgresSetupError) rejectAll(check, error);
      else this.decider.failOver(check, check, error);
    }
  }

  async #consume(checks: readonly QueuedCheck[]): Promise<ConsumeReply> {
    const requests = checks.reduce((sum, { waiting }) => sum + waiting.length, 0);
    this.count++;
    this.coalesced += requests - 1;
    const values = valuesOf(checks);
    const { server, durable } = this.#parts;
    const end = (checks[0] as QueuedCheck).addedAt + server.deadlineMs;
    const left = Math.max(1, end - monotonicClock.now());
    const [row] = await server.query(CONSUME, [...values, server.now(), String(left), durable], left);
    return readConsumeReply(row, checks);
  }
}

function rejectAll({ waiting }: Check, error: Error): void {
  for (const { call, reject } of waiting) {
    if (call !== undefined) call.error = error;
    reject(error);
  }
}

/** The parameters of `consume_1` before the time. */
function valuesOf(checks: readonly QueuedCheck[]): string[] {
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
  const rows = checks.map(({ account, route, windowSet, cost, waiting }) => {
    const layout = layoutOf(windowSet);
    const out = size + 1;
    size += layout.names.length * SLOTS_PER_WINDOW;
    const { own, shared } = layout;
    return [digest(account), digest(route), own, shared, cost, waiting.length, setOf(windowSet, layout), out];
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
function readConsumeReply(row: Row | undefined, checks: readonly QueuedCheck[]): ConsumeReply {
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
