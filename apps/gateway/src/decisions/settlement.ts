import { type Cost, isHeadgateError, type Limiter } from 'headgate';
import type { MaybePromise } from 'headgate/stores';
import { type Refusal, refuse } from '../exchange/refusal.ts';
import { subjectOfReceipt } from './receipt.ts';

/** Settles a charge by its receipt. Resolves to whether it changed anything. */
export type Settle = (receipt: string, cost: Cost) => MaybePromise<boolean | Refusal>;

/** Options of {@link createSettlement}. */
export interface SettlementOptions {
  readonly limiter: Limiter;
  /** Whether the config has a secret for receipts. */
  readonly hasReceipts: boolean;
  readonly onRefund: (route: string) => void;
}

export function createSettlement({ limiter, hasReceipts, onRefund }: SettlementOptions): Settle {
  if (!hasReceipts) return () => NO_RECEIPTS;
  return async (receipt, cost) => {
    try {
      const changed = await limiter.settle(receipt, cost);
      if (changed && cost === 0) onRefund(subjectOfReceipt(receipt)?.route ?? '');
      return changed;
    } catch (error) {
      if (isHeadgateError(error, 'invalid_receipt')) return BAD_RECEIPT;
      if (isHeadgateError(error, 'invalid_cost')) return refuse(422, 'errors/unprocessable_entity', error.message);
      throw error;
    }
  };
}

export const BAD_RECEIPT = refuse(
  422,
  'errors/unprocessable_entity',
  'receipt: is damaged, forged, or of a gateway with another secret',
);
const NO_RECEIPTS = refuse(
  409,
  'errors/conflict',
  'The gateway issues no receipts: its config has no decisions.secret.',
);
