import type { JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import { EMAIL_STATES, type EmailState } from '../../domain/email-state.ts';
import type { Send } from '../../journal/send-records.ts';
import type { Here } from '../here.ts';
import type { Listed } from '../list-page.ts';
import { applicationPath, emailPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { EmailBadge, stateLabel } from './email-state.tsx';
import { ANY, SearchField, SelectField } from './fields.tsx';
import { FilterForm } from './forms.tsx';
import { Note, Older, Row, Time } from './parts.tsx';

/** Emails with an unknown outcome that are counted. */
export const MAX_COUNTED = 999;

interface EmailsPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly emails: Listed<Send>;
  /** Names of accounts by their ids. Removed accounts are missing. */
  readonly names: ReadonlyMap<string, string>;
  readonly filter: { readonly state: EmailState | undefined; readonly account: string };
  /** Whether more accounts match the filter than were looked at. */
  readonly hasMoreAccounts: boolean;
  /** How many emails ended with an unknown outcome, up to {@link MAX_COUNTED} and one more. */
  readonly unknown: number;
}

/** The emails of an application, the newest first. */
export function EmailsPage(props: EmailsPageProps): JSX.Element {
  const { here, application, emails, names, filter, hasMoreAccounts } = props;
  const { state, account } = filter;
  const path = applicationPath(application.id, 'emails');
  const isFiltered = state !== undefined || account !== '';
  return (
    <ApplicationLayout here={here} application={application} title="Emails" part="emails">
      <h1>Emails</h1>
      <UnknownNote {...props} path={path} />
      <FilterForm action={path} isFiltered={isFiltered}>
        <SearchField name="account" label="Account" value={account} />
        <SelectField
          name="state"
          label="State"
          value={state ?? ''}
          options={[ANY, ...EMAIL_STATES.map((value) => ({ value, label: stateLabel(value) }))]}
        />
      </FilterForm>
      {hasMoreAccounts ? (
        <p class="soft">Many accounts match. Only emails of the accounts that were linked last are listed.</p>
      ) : null}
      {emails.rows.length > 0 ? null : isFiltered ? (
        <p class="empty">No email matches. Emails are kept for 30 days after their outcome is known.</p>
      ) : (
        <p class="empty">
          No email was sent in the last 30 days. An application sends one with <code>POST /api/v1/emails</code>: see{' '}
          <a href="/docs">the API</a>.
        </p>
      )}
      <ul class="rows">
        {emails.rows.map(({ id, account_id, state: now, created_at, label, error }) => (
          <Row key={id} title={id} href={emailPath(application.id, id)} badge={<EmailBadge state={now} />}>
            <p class="soft">
              <Time at={created_at} />, from {names.get(account_id) ?? `${account_id}, which is removed`}
              {label === null ? '' : `, label ${label}`}
              {error === null ? null : (
                <>
                  , <code>{error.type}</code>
                </>
              )}
            </p>
          </Row>
        ))}
      </ul>
      <Older href={emails.next} label="Older emails" />
    </ApplicationLayout>
  );
}

function UnknownNote({ unknown, filter, path }: EmailsPageProps & { path: string }): JSX.Element | null {
  if (unknown === 0 || filter.state === 'unknown') return null;
  const many = unknown > MAX_COUNTED ? `More than ${MAX_COUNTED} emails` : `${unknown} emails`;
  return (
    <Note tone="warn">
      <p>
        {unknown === 1 ? '1 email has' : `${many} have`} an unknown outcome. A person can look into the mailbox, and
        enter the outcome. <a href={`${path}?state=unknown`}>Show {unknown === 1 ? 'it' : 'them'}</a>
      </p>
    </Note>
  );
}
