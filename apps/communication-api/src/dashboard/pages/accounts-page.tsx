import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import { ACCOUNT_STATUSES, type AccountStatus } from '../../domain/account-status.ts';
import { PROVIDER_NAMES } from '../../domain/providers.ts';
import type { Scope } from '../../scopes/scopes.ts';
import type { Here } from '../here.ts';
import type { Listed } from '../list-page.ts';
import { accountPath, applicationPath, scopePath } from '../paths.ts';
import { AccountBadge, statusLabel } from './account-status.tsx';
import { ApplicationLayout } from './application-layout.tsx';
import { ANY, SearchField, SelectField } from './fields.tsx';
import { FilterForm } from './forms.tsx';
import { Day, Done, Older, Row } from './parts.tsx';

interface AccountsPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly accounts: Listed<Account>;
  readonly filter: {
    readonly status: AccountStatus | undefined;
    readonly provider: string | undefined;
    readonly search: string;
    readonly scope: Scope | undefined;
  };
  /** Whether an account was just removed. */
  readonly isRemoved: boolean;
}

export function AccountsPage({ here, application, accounts, filter, isRemoved }: AccountsPageProps): JSX.Element {
  const { status, provider, search, scope } = filter;
  const path = applicationPath(application.id, 'accounts');
  const isFiltered = status !== undefined || provider !== undefined || search !== '' || scope !== undefined;
  return (
    <ApplicationLayout here={here} application={application} title="Accounts" part="accounts">
      <Done text={isRemoved ? 'The account is removed. Its credentials are erased.' : undefined} />
      <h1>Accounts</h1>
      <FilterForm action={path} isFiltered={isFiltered}>
        {scope === undefined ? null : <input type="hidden" name="scope_id" value={scope.id} />}
        <SearchField name="search" label="Name" value={search} />
        <SelectField
          name="status"
          label="Status"
          value={status ?? ''}
          options={[ANY, ...ACCOUNT_STATUSES.map((value) => ({ value, label: statusLabel(value) }))]}
        />
        <SelectField
          name="provider"
          label="Provider"
          value={provider ?? ''}
          options={[ANY, ...PROVIDER_NAMES.map((value) => ({ value, label: value }))]}
        />
      </FilterForm>
      {scope === undefined ? null : (
        <p>
          Only accounts of the scope <a href={scopePath(application.id, scope.id)}>{scope.name}</a>.
        </p>
      )}
      {accounts.rows.length > 0 ? null : isFiltered ? (
        <p class="empty">No account matches.</p>
      ) : (
        <p class="empty">
          No account is linked. Make a link with <code>POST /v2/auth/link</code>, and send it to a user: see{' '}
          <a href="/docs">the API</a>.
        </p>
      )}
      <ul class="rows">
        {accounts.rows.map((account) => (
          <Row
            key={account.id}
            title={account.name}
            href={accountPath(application.id, account.id)}
            badge={<AccountBadge account={account} />}
          >
            <p class="soft">
              {account.provider}, <code>{account.id}</code>, linked on <Day at={account.created_at} />
            </p>
          </Row>
        ))}
      </ul>
      <Older href={accounts.next} label="Older accounts" />
    </ApplicationLayout>
  );
}
