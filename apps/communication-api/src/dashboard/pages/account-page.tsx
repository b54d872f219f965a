import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import { shownStatus } from '../../domain/account-status.ts';
import type { LimitSource } from '../../domain/effective-limits.ts';
import type { PreviewedWindow } from '../../domain/limit-preview.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import { accountPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { AskedButton, Done, FaultSummary, FormOf, TextField } from './parts.tsx';
import { WindowBars } from './window-bars.tsx';

/** A limit of an account, as the page shows it. */
export interface LimitView {
  /** What a form calls it. */
  readonly value: string;
  readonly label: string;
  /** The windows, as a person enters them. */
  readonly text: string;
  readonly source: LimitSource;
  readonly windows: readonly PreviewedWindow[];
  /** What was seen, to find out whether another person has changed it meanwhile. */
  readonly seen: string;
}

interface AccountPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly account: Account;
  readonly canManage: boolean;
  readonly limits: readonly LimitView[];
  readonly faulty: { readonly value: string; readonly inputs: Inputs } | undefined;
  /** Whether the browser loads the page again and again. Then it has no forms: what is entered would be lost. */
  readonly isLive: boolean;
  readonly done: 'adjusted' | 'emptied' | undefined;
  readonly nowMs: number;
}

const SOURCES = {
  recommended: 'Recommended for the provider',
  application: 'Adjusted for the provider, in this application',
  account: 'Adjusted for this account',
};

const DONE = {
  adjusted: 'The limit is changed. Every process obeys it within a second.',
  emptied: 'The counters are empty.',
};

/** An account with its live windows. */
export function AccountPage(props: AccountPageProps): JSX.Element {
  const { here, application, account, limits, faulty, done, isLive, nowMs } = props;
  const canManage = props.canManage && !isLive;
  const path = accountPath(application.id, account.id);
  return (
    <ApplicationLayout
      here={here}
      application={application}
      title={account.name}
      part="accounts"
      faulty={faulty !== undefined}
    >
      <FaultSummary faults={faulty?.inputs.faults ?? []} prefix={`${faulty?.value}-`} />
      <Done text={done && DONE[done]} />
      <div class="what">
        <h1>{account.name}</h1>
        <span class="badge">{shownStatus(account)}</span>
      </div>
      <p class="soft">
        {account.provider}, <code>{account.id}</code>
      </p>
      <section aria-labelledby="limits">
        <h2 id="limits">Limits</h2>
        <p class="soft">
          As counted at {new Date(nowMs).toISOString().slice(11, 19)} UTC.{' '}
          {isLive ? <a href={path}>Stop following</a> : <a href={`${path}?live`}>Follow, every 5 seconds</a>}
        </p>
        {limits.map((limit) => (
          <LimitPanel key={limit.value} {...props} canManage={canManage} limit={limit} />
        ))}
        {canManage ? (
          <AskedButton
            {...here.form(accountPath(application.id, account.id, 'counters'))}
            label="Empty the counters"
            subject={`of ${account.name}`}
            consequence="What the account has used is forgotten. Its provider does not forget."
          />
        ) : null}
        {props.canManage ? null : (
          <p class="soft">Your role may only look at the limits of a production application.</p>
        )}
      </section>
    </ApplicationLayout>
  );
}

function LimitPanel({
  here,
  application,
  account,
  canManage,
  faulty,
  limit,
}: AccountPageProps & { limit: LimitView }): JSX.Element {
  const { value, label, text, source, windows, seen } = limit;
  const inputs = faulty?.value === value ? faulty.inputs : undefined;
  const form = here.form(accountPath(application.id, account.id, 'preview'));
  return (
    <section class="panel" aria-label={label}>
      <h3>{label}</h3>
      <p class="soft">{SOURCES[source]}</p>
      <WindowBars windows={windows} />
      {canManage ? (
        <details class="asked" open={inputs !== undefined}>
          <summary>
            Adjust <span class="hidden">{label}</span>
          </summary>
          <div class="inside">
            <FormOf {...form}>
              <input type="hidden" name="route" value={value} />
              <input type="hidden" name="seen" value={seen} />
              <TextField
                name="windows"
                prefix={`${value}-`}
                label="Windows"
                hint="One or two, such as 120/1m, 20000/1d. Units: ms, s, m, h, d."
                value={inputs?.raw('windows') || text}
                faults={inputs?.faults ?? []}
              />
              <div class="deeds">
                <button type="submit">Preview</button>
                {source === 'account' ? (
                  <button type="submit" name="reset" value="yes" class="plain">
                    Preview the reset
                  </button>
                ) : null}
              </div>
            </FormOf>
          </div>
        </details>
      ) : null}
    </section>
  );
}
