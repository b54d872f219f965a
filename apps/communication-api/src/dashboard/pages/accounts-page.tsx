import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import { shownStatus } from '../../domain/account-status.ts';
import type { Here } from '../here.ts';
import type { Listed } from '../list-page.ts';
import { accountPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { Day, Older } from './parts.tsx';

interface AccountsPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly accounts: Listed<Account>;
}

export const AccountsPage = ({ here, application, accounts }: AccountsPageProps): JSX.Element => (
  <ApplicationLayout here={here} application={application} title="Accounts" part="accounts">
    <h1>Accounts</h1>
    {accounts.rows.length === 0 ? <p class="empty">No account is linked.</p> : null}
    <ul class="rows">
      {accounts.rows.map((account) => (
        <li key={account.id}>
          <div class="what">
            <a class="title" href={accountPath(application.id, account.id)}>
              {account.name}
            </a>
            <span class="badge">{shownStatus(account)}</span>
          </div>
          <p class="soft">
            {account.provider}, <code>{account.id}</code>, linked on <Day at={account.created_at} />
          </p>
        </li>
      ))}
    </ul>
    <Older href={accounts.next} label="Older accounts" />
  </ApplicationLayout>
);
