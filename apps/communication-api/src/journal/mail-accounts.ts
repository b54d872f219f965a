import type { Account, Accounts } from '../accounts/accounts.ts';
import type { AccountHealth } from '../accounts/health.ts';
import type { MailAccount, MailProvider, Provider } from '../providers/provider.ts';
import type { Egress } from '../security/egress.ts';
import { watchedMail } from './watched-mail.ts';

/** Accounts as their providers need them. */
export class MailAccounts {
  constructor(
    private readonly accounts: Accounts,
    private readonly egress: Egress,
    private readonly health: AccountHealth,
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

  /** How the provider sends emails for the account, if it does. Every call for an account is made with this. */
  mailOf(account: Account, provider: Provider | undefined): MailProvider | undefined {
    return provider?.mail && watchedMail(provider.mail, account, this.health);
  }
}
