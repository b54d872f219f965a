import type { Account } from '../accounts/accounts.ts';
import type { LimitOwner } from '../limits/account-limits.ts';
import { accountPath, providerPath } from './paths.ts';

/** The owner of the limits that a page shows and changes: one account, or all accounts of a provider. */
export interface LimitTarget extends LimitOwner {
  /** Undefined: all accounts of the provider. */
  readonly account: Account | undefined;
  /** For people. */
  readonly name: string;
  /** The page with the limits. The addresses of its forms are below it. */
  readonly path: string;
}

export const ofAccount = (account: Account): LimitTarget => ({
  applicationId: account.application_id,
  provider: account.provider,
  account,
  accountId: account.id,
  name: account.name,
  path: accountPath(account.application_id, account.id),
});

export const ofProvider = (applicationId: string, provider: string): LimitTarget => ({
  applicationId,
  provider,
  account: undefined,
  name: `all ${provider} accounts`,
  path: providerPath(applicationId, provider),
});
