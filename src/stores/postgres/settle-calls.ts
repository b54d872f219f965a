import { monotonicClock } from '../../core/clock.ts';
import type { Decision } from '../../core/decision.ts';
import { lastMsOf, type Receipted } from '../shared/settlement.ts';
import { traceCall } from '../shared/store-tracer.ts';
import { CallQueue, type QueuedItem } from './call-queue.ts';
import { keysOf, type LimitStoreParts } from './check-calls.ts';
import type { Row } from './database.ts';
import { layoutOf, windowName } from './layout.ts';
import { arrayOf, digest } from './names.ts';

const SETTLE = `select headgate.settle_2($1::text::uuid[], $2::text::uuid[], $3::text::boolean[], $4::text::boolean[],
  $5::text::bigint[], $6::text::text[], $7::text::bigint[], $8::text::bigint[], $9::text::integer[],
  $10::text::bigint[], $11::text::bigint[], $12::text::bigint, $13::text::bigint, $14::text::boolean) as settled`;

/** Calls under way at the same time, each on a connection of its own. */
const MAX_CALLS = 2;

/** A settlement that waits for a call. */
interface Settlement extends QueuedItem {
  readonly decision: Decision;
  readonly change: number;
  /** Whether instances are removed that the decision started, once their counts are 0. */
  readonly isUndone: boolean;
  readonly receipted: Receipted | undefined;
  resolve(isSettled: boolean): void;
  reject(error: unknown): void;
}

/** Sends settlements to PostgreSQL, those that wait at the same time together. */
export class SettleCalls {
  readonly #parts: LimitStoreParts;
  readonly #queue: CallQueue<Settlement>;

  constructor(parts: LimitStoreParts) {
    this.#parts = parts;
    const { server } = parts;
    this.#queue = new CallQueue({
      maxCalls: MAX_CALLS,
      maxWaitMs: server.maxWaitMs,
      sharesRows: true,
      send: (settlements) => this.#send(settlements),
      giveUp: (settlements) => rejectAll(settlements, server.tooLate()),
    });
  }

  /**
   * Adds `change` to the counts that a decision charged. Returns whether one of them was still active.
   * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError
   */
  settle(decision: Decision, change: number, isUndone: boolean, pair: string, receipted?: Receipted): Promise<boolean> {
    const keys = keysOf(decision.account, decision.windowSet, pair);
    return traceCall(
      'limits',
      'settle',
      this.#parts.server.breaker,
      () =>
        new Promise((resolve, reject) =>
          this.#queue.add({
            keys,
            addedAt: monotonicClock.now(),
            decision,
            change,
            isUndone,
            receipted,
            resolve,
            reject,
          }),
        ),
    );
  }

  async #send(settlements: readonly Settlement[]): Promise<void> {
    const { server, durable } = this.#parts;
    const left = server.timeLeft((settlements[0] as Settlement).addedAt);
    const values = [...valuesOf(settlements), server.now(), String(left), durable];
    try {
      const settled = await server.query(SETTLE, values, left, ([row]) => readReply(row, settlements.length));
      for (const [i, { resolve }] of settlements.entries()) resolve(settled[i] === '1');
    } catch (error) {
      rejectAll(settlements, error);
    }
  }
}

function rejectAll(settlements: readonly Settlement[], error: unknown): void {
  for (const { reject } of settlements) reject(error);
}

/** The parameters of `settle_2` before the time. */
function valuesOf(settlements: readonly Settlement[]): string[] {
  const starts = [1];
  const names: string[] = [];
  const started: number[] = [];
  const rows = settlements.map(({ decision, change, isUndone, receipted }) => {
    const { account, route, windowSet, trace } = decision;
    const { own, shared } = layoutOf(windowSet);
    for (const window of trace) {
      if (window.startedAt === undefined) continue;
      names.push(windowName(window, shared));
      started.push(window.startedAt);
    }
    starts.push(names.length + 1);
    // In quotes, so that no receipt can end the element.
    const receipt = receipted === undefined ? 'null' : JSON.stringify(receipted.receipt);
    return [
      digest(account),
      digest(route),
      own,
      shared,
      change,
      receipt,
      lastMsOf(receipted),
      isUndone ? decision.decidedAt : 'null',
    ];
  });
  const columns = (rows[0] as unknown[]).map((_, i) => arrayOf(rows.map((row) => row[i] as string)));
  return [...columns, arrayOf(starts), arrayOf(names), arrayOf(started)];
}

/** @throws TypeError for anything that the function cannot return */
function readReply(row: Row | undefined, settlements: number): string {
  const settled = row?.settled;
  if (typeof settled === 'string' && settled.length === settlements && /^[01]*$/.test(settled)) return settled;
  throw new TypeError(`unexpected reply of PostgreSQL: ${JSON.stringify(settled)?.slice(0, 200)}`);
}
