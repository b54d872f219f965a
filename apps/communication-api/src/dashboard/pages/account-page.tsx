import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import { syncAt } from '../../domain/initial-sync.ts';
import type { Scope } from '../../scopes/scopes.ts';
import type { FaultyForm } from '../faulty-form.ts';
import type { Here } from '../here.ts';
import { ofAccount } from '../limit-target.ts';
import type { LimitView } from '../limit-views.ts';
import { queryOf } from '../list-page.ts';
import { accountPath, applicationPath, providerPath } from '../paths.ts';
import { ReconnectForm } from './account-link-page.tsx';
import { AccountBadge, AccountStatusNote } from './account-status.tsx';
import { ApplicationLayout } from './application-layout.tsx';
import { AskedButton, FaultSummary, FormOf } from './forms.tsx';
import { LIMIT_DONE, LimitPanel } from './limit-panel.tsx';
import { Done, Fact, Time } from './parts.tsx';

interface AccountPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly account: Account;
  /** The scope of the account, if it is set and exists. */
  readonly scope: Scope | undefined;
  readonly canManageAccount: boolean;
  readonly canManageLimits: boolean;
  /** Hosts of the application that a link may use. */
  readonly hosts: readonly string[];
  readonly limits: readonly LimitView[];
  readonly faulty: FaultyForm | undefined;
  /**
   * Whether the browser reloads the page again and again. Then the page shows no forms: entered values would be lost.
   */
  readonly isLive: boolean;
  readonly done: string | undefined;
  readonly nowMs: number;
}

/** The messages about finished actions, by their names in the query. */
export const ACCOUNT_DONE: Readonly<Record<string, string>> = {
  adjusted: LIMIT_DONE,
  emptied: 'The counters are empty.',
  pause: 'The account is paused. It sends nothing.',
  resume: 'The account is resumed.',
};

/** An account with its status and its live windows. */
export function AccountPage(props: AccountPageProps): JSX.Element {
  const { here, application, account, canManageAccount, canManageLimits, limits, faulty, done, isLive, nowMs } = props;
  const path = accountPath(application.id, account.id);
  return (
    <ApplicationLayout
      here={here}
      application={application}
      title={account.name}
      part="accounts"
      faulty={faulty !== undefined}
    >
      <FaultSummary faults={faulty?.inputs.faults ?? []} prefix={`${faulty?.form}-`} />
      <Done text={done} />
      <div class="what">
        <h1>{account.name}</h1>
        <AccountBadge account={account} />
      </div>
      <AccountStatusNote account={account} />
      <Facts {...props} />
      <p>
        <a href={`${applicationPath(application.id, 'emails')}?${queryOf({ account: account.id })}`}>
          Emails of this account
        </a>
      </p>
      {account.provider === 'mock' ? (
        <p>
          <a href={`${path}/mailbox`}>Mailbox of this account</a>
        </p>
      ) : null}
      {canManageAccount ? <Deeds {...props} /> : null}
      <section aria-labelledby="limits">
        <h2 id="limits">Limits</h2>
        <p class="soft">
          As counted at {new Date(nowMs).toISOString().slice(11, 19)} UTC.{' '}
          {isLive ? <a href={path}>Stop following</a> : <a href={`${path}?live`}>Follow, every 5 seconds</a>}.{' '}
          <a href={providerPath(application.id, account.provider)}>Limits of all {account.provider} accounts</a>
        </p>
        {limits.map((limit) => (
          <LimitPanel
            key={limit.value}
            here={here}
            target={ofAccount(account)}
            limit={limit}
            canManage={canManageLimits}
            faulty={faulty}
          />
        ))}
        {canManageLimits ? (
          <AskedButton
            {...here.form(accountPath(application.id, account.id, 'counters'))}
            label="Empty the counters"
            subject={`of ${account.name}`}
            consequence="The counted usage is forgotten here. The provider does not forget it."
          />
        ) : null}
      </section>
      {canManageAccount || isLive ? null : (
        <p class="soft">Your role may only look at the accounts of a production application.</p>
      )}
    </ApplicationLayout>
  );
}

function Facts({ account, scope, nowMs }: AccountPageProps): JSX.Element {
  const { provider, id, provider_user_id: userId, created_at, connected_at, scope_id, proxy } = account;
  const sync = syncAt(account.sync, nowMs);
  return (
    <dl class="facts panel">
      <Fact name="Provider">{provider}</Fact>
      <Fact name="Id">
        <code>{id}</code>
      </Fact>
      <Fact name="Id at the provider">{userId}</Fact>
      <Fact name="Linked">
        <Time at={created_at} />
      </Fact>
      {connected_at.getTime() === created_at.getTime() ? null : (
        <Fact name="Reconnected">
          <Time at={connected_at} />
        </Fact>
      )}
      <Fact name="Scope">{scope_id === null ? 'None' : (scope?.name ?? <code>{scope_id}</code>)}</Fact>
      <Fact name="Initial sync">
        {sync.status === 'completed' ? 'Completed' : `Running, ${Math.floor(sync.progress * 100)} %`}
      </Fact>
      <Fact name="Proxy">{proxyText(proxy)}</Fact>
    </dl>
  );
}

/** The stored form omits the password. */
function proxyText(proxy: Account['proxy']): string {
  if (proxy === null) return 'None';
  const { protocol, host, port, username } = proxy;
  return `${protocol}://${username === undefined ? '' : `${username}@`}${host}:${port}`;
}

/** The actions on the account itself. */
function Deeds(props: AccountPageProps): JSX.Element {
  const { here, application, account } = props;
  const pathOf = (deed: string): string => accountPath(application.id, account.id, deed);
  return (
    <section class="panel" aria-labelledby="manage">
      <h2 id="manage">Manage this account</h2>
      <div>
        <ReconnectForm {...props} />
        {account.paused_at === null ? (
          <AskedButton
            {...here.form(pathOf('pause'))}
            label="Pause"
            subject={account.name}
            consequence="It sends nothing until it is resumed. Each request gets 403, and is not queued. Emails that are being sent now still go out."
          />
        ) : null}
        <AskedButton
          {...here.form(pathOf('remove'))}
          label="Remove"
          subject={account.name}
          consequence="Its credentials are erased here, and withdrawn at the provider if the provider supports it. Its metadata and its own limits are lost, and copies that wait for its folder of sent mail are not filed. The mailbox stays as it is, and the journal of its emails stays. The audit log keeps its name. It cannot be undone: its user would have to link it again, with a new id."
        />
      </div>
      {account.paused_at === null ? null : (
        <FormOf {...here.form(pathOf('resume'))}>
          <button type="submit">Resume {account.name}</button>
        </FormOf>
      )}
    </section>
  );
}
