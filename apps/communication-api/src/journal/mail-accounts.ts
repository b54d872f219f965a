import type { Account, Accounts } from '../accounts/accounts.ts';
import type { MailAccount } from '../providers/provider.ts';
import type { Egress } from '../security/egress.ts';

/** Accounts as their providers need them. */
export class MailAccounts {
  constructor(
    private readonly accounts: Accounts,
    private readonly egress: Egress,
  ) {}

  of(account: Account): MailAccount {
    const { credentials, proxy } = this.accounts.secretOf(account);
    return {
      id: account.id,
      address: account.name,
      credentials,
      net: this.egress.through(proxy),
      renew: (stale, refresh) => this.accounts.renew(account.application_id, account.id, stale, refresh),
    };
  }
}
