import type { Account, Accounts } from '../accounts/accounts.ts';
import type { MailAccount } from '../providers/provider.ts';

/** An account as its provider needs it. */
export const mailAccountOf = (accounts: Accounts, account: Account): MailAccount => ({
  id: account.id,
  address: account.name,
  credentials: accounts.secretOf(account).credentials,
});
