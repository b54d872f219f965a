/**
 * The outcome of an attempt to send. `failed`: the provider refused the email; `not_sent`: it did not take the email,
 * and a retry may succeed; `unknown`: it is not known whether the email was sent; `refused`: an earlier request with
 * the same key prevents it; `error`: the service itself failed.
 */
export const SEND_OUTCOMES = ['sent', 'replayed', 'failed', 'not_sent', 'unknown', 'refused', 'error'] as const;
export type SendOutcome = (typeof SEND_OUTCOMES)[number];
