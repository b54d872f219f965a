import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import type { ReadHead } from '../../mail/read-message.ts';
import type { MockEntry } from '../../providers/mock/mailbox.ts';
import type { Here } from '../here.ts';
import type { Listed } from '../list-page.ts';
import { accountPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { Older, Row, seen, Time } from './parts.tsx';

interface MailboxPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly account: Account;
  readonly emails: Listed<MockEntry>;
  /** Of the rows, in their order. */
  readonly heads: readonly ReadHead[];
}

/** The emails that the mock delivered for an account, the newest first. */
export const MailboxPage = ({ here, application, account, emails, heads }: MailboxPageProps): JSX.Element => (
  <ApplicationLayout here={here} application={application} title={`Mailbox of ${account.name}`} part="accounts">
    <div>
      <p>
        <a href={accountPath(application.id, account.id)}>{account.name}</a>
      </p>
      <h1>Mailbox</h1>
    </div>
    <p class="soft">The mock provider sends nothing. It keeps the emails of this account here, as it received them.</p>
    {emails.rows.length > 0 ? null : <p class="empty">No email was sent with this account.</p>}
    <ul class="rows">
      {emails.rows.map(({ id, recipients, at, size }, index) => (
        <Row
          key={id}
          title={seen(heads[index]?.subject ?? '') || 'No subject'}
          href={accountPath(application.id, account.id, `mailbox/${id}`)}
          badge={null}
        >
          <p class="soft">
            <Time at={at} to="second" />, to {recipientsText(recipients)}, {size.toLocaleString('en')} bytes
          </p>
        </Row>
      ))}
    </ul>
    <Older href={emails.next} label="Older emails" />
  </ApplicationLayout>
);

const MOST_SHOWN = 3;

function recipientsText(recipients: readonly string[]): string {
  const more = recipients.length - MOST_SHOWN;
  return `${recipients.slice(0, MOST_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
