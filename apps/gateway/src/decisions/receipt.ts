import { type Decision, isHeadgateError } from 'headgate';

/** The field in which a proxy gets a receipt, and gives it back. */
export const RECEIPT_FIELD = 'x-headgate-receipt';
/** Longest receipt, in characters. */
export const MAX_RECEIPT = 8_192;

/**
 * The text that settles the charge of a decision; undefined if nothing can be settled by it, or if the names of account
 * and route are too long for it.
 */
export function receiptOf(decision: Decision | undefined): string | undefined {
  if (decision === undefined || decision.degraded) return undefined;
  try {
    return decision.receipt;
  } catch (error) {
    if (isHeadgateError(error, 'invalid_option')) return undefined;
    throw error;
  }
}

/** Account and route that a receipt names. Only the limiter checks its signature. Undefined if it is damaged. */
export function subjectOfReceipt(text: string): { readonly account: string; readonly route: string } | undefined {
  try {
    const [, payload = ''] = text.split('.', 2);
    const [, account, route] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as unknown[];
    return typeof account === 'string' && typeof route === 'string' ? { account, route } : undefined;
  } catch {
    return undefined;
  }
}
