/** The status of an account, as clients see it. */
export const ACCOUNT_STATUSES = ['running', 'disconnected', 'error', 'paused'] as const;

export type AccountStatus = (typeof ACCOUNT_STATUSES)[number];

/** An operator's pause is shown instead of the provider's status, which is still recorded meanwhile. */
export const shownStatus = (account: {
  readonly status: Exclude<AccountStatus, 'paused'>;
  readonly paused_at: Date | null;
}): AccountStatus => (account.paused_at === null ? account.status : 'paused');
