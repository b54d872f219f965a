import { StoreFullError, StoreUnavailableError } from '../../base/errors.ts';
import type { Decision } from '../../core/decision.ts';
import { lastMsOf, type Receipted } from '../shared/settlement.ts';
import { BatchedScript } from './batched-script.ts';
import type { LimitStoreParts } from './check-calls.ts';
import { isSlotMoving } from './errors.ts';
import { layoutOf, windowName } from './layout.ts';
import settleSource from './lua/settle.lua';
import { readSettleReplies } from './reply.ts';
import { createScript } from './script.ts';

const settleScript = /* @__PURE__ */ createScript(settleSource);

/** Most settled receipts of one account that are remembered: `settle.lua` has the same number. */
const MAX_RECEIPTS = 65_536;

/**
 * Sends settlements to Redis. Those with a receipt can be many at once, when a process gives back its leases, so those of
 * one turn of the event loop are sent together.
 */
export class SettleCalls {
  readonly #script: BatchedScript<number>;

  constructor(parts: LimitStoreParts) {
    this.#script = new BatchedScript(parts, settleScript, readSettleReplies);
  }

  /**
   * Adds `change` to the counts that a decision charged. Returns whether one of them was still active.
   * @param isUndone whether instances are removed that the decision started, once their counts are 0
   * @param keys of its records
   * @param receiptsKey of the settled receipts of its account
   * @throws StoreFullError, StoreTimeoutError, StoreUnavailableError
   */
  async settle(
    { account, windowSet, trace, decidedAt }: Decision,
    change: number,
    isUndone: boolean,
    keys: readonly string[],
    receiptsKey: string,
    receipted?: Receipted,
  ): Promise<boolean> {
    const receipt = receipted?.receipt ?? '';
    const windows = trace.flatMap((window) => [windowName(window), window.startedAt]);
    const fields = [
      keys.length,
      layoutOf(windowSet).ownWindows,
      change,
      receipt,
      lastMsOf(receipted),
      isUndone ? decidedAt : '',
      ...windows,
    ];
    const ownKeys = receipt === '' ? keys : [...keys, receiptsKey];
    const isAtOnce = receipt === '' && !isUndone;
    const reply = await this.#script.run('settle', { account, keys: ownKeys, fields }, isAtOnce);
    if (reply === -1) throw new StoreFullError(MAX_RECEIPTS, 'settled receipts');
    if (reply < 0) throw this.#script.recordFault(ownKeys[-2 - reply]);
    return reply > 0;
  }
}

/** Whether a settlement failed before the server executed anything, and will not be executed later. */
export function isNotExecuted(error: unknown): boolean {
  return (
    error instanceof StoreFullError ||
    (error instanceof StoreUnavailableError && (!error.sent || isSlotMoving(error.cause)))
  );
}
