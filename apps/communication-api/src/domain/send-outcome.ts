/**
 * What an attempt to send came to. `failed`: the provider refused the email; `not_sent`: it did not take the email, and a
 * retry may succeed; `unknown`: it is not known whether the email was sent; `refused`: an earlier request with the same
 * key stands in the way; `error`: the service itself failed.
 */
export const SEND_OUTCOMES = ['sent', 'replayed', 'failed', 'not_sent', 'unknown', 'refused', 'error'] as const;
export type SendOutcome = (typeof SEND_OUTCOMES)[number];
