import { IN_FLIGHT_LIMITS, type SlotReply } from '../../core/slot.ts';
import type { SlotCommand } from '../shared/server-slots.ts';
import { BatchedScript } from './batched-script.ts';
import type { LimitStoreParts } from './check-calls.ts';
import slotsSource from './lua/slots.lua';
import { readSlotReplies } from './reply.ts';
import { createScript } from './script.ts';

const slotsScript = /* @__PURE__ */ createScript(slotsSource);

/** Sends commands about slots to Redis. Those of one turn of the event loop are sent together, such as renewals. */
export class SlotCalls {
  readonly #parts: LimitStoreParts;
  readonly #script: BatchedScript<string>;

  constructor(parts: LimitStoreParts) {
    this.#parts = parts;
    this.#script = new BatchedScript(parts, slotsScript, readSlotReplies);
  }

  /**
   * Takes, renews or releases a slot.
   * @throws StoreTimeoutError, StoreUnavailableError
   */
  readonly run = async ({ slot, leaseMs }: SlotCommand): Promise<SlotReply> => {
    const { names } = this.#parts;
    const { account, route, token, most } = slot;
    const limits = IN_FLIGHT_LIMITS.filter((limit) => most[limit] !== undefined);
    const keys = limits.map((limit) => names.slots(account, limit === 'route' ? route : undefined));
    const fields = [leaseMs, token, ...limits.map((limit) => most[limit])];
    const operation = leaseMs === 0 ? 'release_slot' : 'hold_slot';
    const reply = await this.#script.run(operation, { account, keys, fields });
    if (reply.startsWith('-')) throw this.#script.recordFault(keys[Number(reply.slice(1)) - 1]);
    const [held, ...counts] = reply.split(':').map(Number);
    return { held: held === 1, running: Object.fromEntries(limits.map((limit, i) => [limit, counts[i]])) };
  };
}
