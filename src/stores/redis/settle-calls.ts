import { StoreFullError, StoreUnavailableError } from '../../base/errors.ts';
import type { Decision } from '../../core/decision.ts';
import { CommandBatcher, type PendingCommand } from '../shared/command-batcher.ts';
import { lastMsOf, type Receipted } from '../shared/settlement.ts';
import { traceCall } from '../shared/store-tracer.ts';
import type { LimitStoreParts } from './check-calls.ts';
import { foreignRecord, isSlotMoving } from './errors.ts';
import { layoutOf, windowName } from './layout.ts';
import settleSource from './lua/settle.lua';
import { readSettleReplies } from './reply.ts';
import { createScript, scriptTime } from './script.ts';

const settleScript = /* @__PURE__ */ createScript(settleSource);

/** Most settled receipts of one account that are remembered: `settle.lua` has the same number. */
const MAX_RECEIPTS = 65_536;

/** A settlement that is not sent yet. */
interface Pending extends PendingCommand {
  readonly account: string;
  readonly keys: readonly string[];
  /** Its part of ARGV[2] of `settle.lua`. */
  readonly json: string;
  /** Called with its part of the reply. */
  resolve(reply: number): void;
  reject(error: unknown): void;
}

/**
 * Sends settlements to Redis. Those with a receipt can be many at once, when a process gives back its leases, so those of
 * one turn of the event loop are sent together.
 */
export class SettleCalls {
  readonly #parts: LimitStoreParts;
  readonly #batcher: CommandBatcher<Pending>;

  constructor(parts: LimitStoreParts) {
    this.#parts = parts;
    const { isCluster, isOverHttp } = parts.commands;
    this.#batcher = new CommandBatcher({
      // On Workers, a request must not wait for the call of another request, whose end would end that call.
      oneCommandPerCall: isOverHttp === true,
      // A script in a cluster can only touch keys of one slot, and only keys of one account are sure to share a slot.
      groupOf: isCluster ? ({ account }) => account : undefined,
      send: (pending) => void this.#send(pending),
    });
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
    const json = JSON.stringify([
      keys.length,
      layoutOf(windowSet).ownWindows,
      change,
      receipt,
      lastMsOf(receipted),
      isUndone ? decidedAt : '',
      ...windows,
    ]);
    const ownKeys = receipt === '' ? keys : [...keys, receiptsKey];
    const characters = ownKeys.reduce((sum, key) => sum + key.length, json.length);
    const reply = await traceCall(
      'limits',
      'settle',
      this.#parts.breaker,
      () =>
        new Promise<number>((resolve, reject) => {
          const pending = { account, keys: ownKeys, json, characters, resolve, reject };
          if (receipt === '' && !isUndone) void this.#send([pending]);
          else this.#batcher.add(pending);
        }),
    );
    if (reply === -1) throw new StoreFullError(MAX_RECEIPTS, 'settled receipts');
    if (reply < 0) throw this.#recordFault(ownKeys[-2 - reply]);
    return reply > 0;
  }

  async #send(pending: readonly Pending[]): Promise<void> {
    const { commands, breaker, clock } = this.#parts;
    const keys = pending.flatMap((settlement) => settlement.keys);
    const args = [scriptTime(clock), `[${pending.map(({ json }) => json).join()}]`];
    try {
      const replies = await breaker.run(async () =>
        readSettleReplies(await settleScript.run(commands, keys, args), pending.length),
      );
      for (const [i, { resolve }] of pending.entries()) resolve(replies[i] as number);
    } catch (error) {
      // Each record is on one of two nodes, so that a settlement with one key can be executed.
      if (pending.length > 1 && isSlotMoving((error as Error).cause))
        for (const settlement of pending) void this.#send([settlement]);
      else for (const { reject } of pending) reject(error);
    }
  }

  /** Reports a key that headgate did not write. This does not count for the circuit breaker. */
  #recordFault(key: string | undefined): StoreUnavailableError {
    const error = foreignRecord(key);
    this.#parts.outages.recordFailed(error);
    return new StoreUnavailableError(error);
  }
}

/** Whether a settlement failed before the server executed anything, and will not be executed later. */
export function isNotExecuted(error: unknown): boolean {
  return (
    error instanceof StoreFullError ||
    (error instanceof StoreUnavailableError && (!error.sent || isSlotMoving(error.cause)))
  );
}
