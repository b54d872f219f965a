import type { Decision } from '../../core/decision.ts';
import { lastMsOf, type Receipted } from '../shared/settlement.ts';
import { BatchedStatement } from './batched-statement.ts';
import { keysOf, type LimitStoreParts } from './check-calls.ts';
import type { Row } from './database.ts';
import { layoutOf, windowName } from './layout.ts';
import { arrayOf, digest } from './names.ts';

const SETTLE = `select headgate.settle_2($1::text::uuid[], $2::text::uuid[], $3::text::boolean[], $4::text::boolean[],
  $5::text::bigint[], $6::text::text[], $7::text::bigint[], $8::text::bigint[], $9::text::integer[],
  $10::text::bigint[], $11::text::bigint[], $12::text::bigint, $13::text::bigint, $14::text::boolean) as settled`;

/** A settlement of one decision. */
interface Settlement {
  readonly decision: Decision;
  readonly change: number;
  /** Whether instances are removed that the decision started, once their counts are 0. */
  readonly isUndone: boolean;
  readonly receipted: Receipted | undefined;
}

/** Sends settlements to PostgreSQL, those that wait at the same time together. */
export class SettleCalls {
  readonly #statement: BatchedStatement<Settlement, boolean>;

  constructor({ server, durable }: LimitStoreParts) {
    this.#statement = new BatchedStatement(server, { text: SETTLE, valuesOf, further: [durable], read: readReplies });
  }

  /**
   * Adds `change` to the counts that a decision charged. Returns whether one of them was still active.
   * @throws PostgresSetupError, StoreTimeoutError, StoreUnavailableError
   */
  settle(decision: Decision, change: number, isUndone: boolean, pair: string, receipted?: Receipted): Promise<boolean> {
    const keys = keysOf(decision.account, decision.windowSet, pair);
    return this.#statement.run('settle', keys, { decision, change, isUndone, receipted });
  }
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
function readReplies(row: Row | undefined, settlements: number): readonly boolean[] {
  const settled = row?.settled;
  if (typeof settled === 'string' && settled.length === settlements && /^[01]*$/.test(settled))
    return [...settled].map((each) => each === '1');
  throw new TypeError(`unexpected reply of PostgreSQL: ${JSON.stringify(settled)?.slice(0, 200)}`);
}
