import { isHeadgateError } from '../../base/errors.ts';
import type { Slot, SlotReply } from '../../core/slot.ts';
import type { Failover } from './failover.ts';

/** A slot that is not held or released on the server yet. */
export interface SlotCommand {
  readonly slot: Slot;
  /** 0 releases it. */
  readonly leaseMs: number;
}

/**
 * Holds a slot on a server. If that fails, the failure policy decides, unless the set-up is wrong. It knows the slots
 * that this process holds.
 * @throws PostgresSetupError, or the errors of the failure policy
 */
export async function holdOnServer(
  failover: Failover,
  { slot, leaseMs }: SlotCommand,
  send: (command: SlotCommand) => Promise<SlotReply>,
): Promise<SlotReply> {
  try {
    const reply = await send({ slot, leaseMs });
    if (reply.held) failover.noteSlot(slot, leaseMs);
    return reply;
  } catch (error) {
    if (isHeadgateError(error, 'store_setup')) throw error;
    return failover.holdSlot(slot, leaseMs, error);
  }
}
