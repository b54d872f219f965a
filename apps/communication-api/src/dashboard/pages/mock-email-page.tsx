import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import type { ReadMessage } from '../../mail/read-message.ts';
import { type MockMessage, providerIdOf } from '../../providers/mock/mailbox.ts';
import type { Here } from '../here.ts';
import { accountPath, emailPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { Fact, seen, Text, Time } from './parts.tsx';

/** The rights of the frame with the HTML. A link opens a tab that is no sandbox. */
export const FRAME_RIGHTS = 'allow-popups allow-popups-to-escape-sandbox';

interface MockEmailPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly account: Account;
  readonly message: MockMessage;
  readonly read: ReadMessage;
  /** Undefined: the journal has forgotten the email. */
  readonly trackingId: string | undefined;
}

/** An email that the mock delivered. */
export function MockEmailPage(props: MockEmailPageProps): JSX.Element {
  const { here, application, account, message, read } = props;
  const path = accountPath(application.id, account.id, 'mailbox');
  const subject = seen(read.subject ?? '') || 'No subject';
  return (
    <ApplicationLayout here={here} application={application} title={subject} part="accounts">
      <div>
        <p>
          <a href={path}>Mailbox of {account.name}</a>
        </p>
        <h1 class="url">{subject}</h1>
      </div>
      <Facts {...props} />
      {message.raw.length === message.size ? null : (
        <p class="soft">The email is longer: only its beginning is stored, and shown.</p>
      )}
      {read.html === null ? null : (
        <section aria-labelledby="html">
          <h2 id="html">HTML</h2>
          <iframe
            class="email"
            src={`${path}/${providerIdOf(message)}/html`}
            title="The email as HTML"
            sandbox={FRAME_RIGHTS}
          />
          <p class="soft">
            It is shown without scripts and without pictures from elsewhere. Its links open in a new tab.
          </p>
          <Source summary="The HTML" text={read.html} />
        </section>
      )}
      {read.text === null ? null : (
        <section aria-labelledby="text">
          <h2 id="text">Text</h2>
          <Text text={read.text} />
        </section>
      )}
      {read.attachments.length === 0 ? null : (
        <section aria-labelledby="attachments">
          <h2 id="attachments">Attachments</h2>
          <ul class="rows">
            {read.attachments.map(({ filename, contentType, size }, index) => (
              <li key={index}>
                <p>{seen(filename ?? '') || 'No name'}</p>
                <p class="soft">
                  {contentType}, {size.toLocaleString('en')} bytes
                </p>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section aria-labelledby="headers">
        <h2 id="headers">Headers</h2>
        <Text text={read.headers.map(({ name, value }) => `${name}: ${value}`).join('\n')} />
        <Source summary="The whole message, as it was received" text={Buffer.from(message.raw).toString()} />
      </section>
    </ApplicationLayout>
  );
}

function Facts({ application, message, read, trackingId }: MockEmailPageProps): JSX.Element {
  return (
    <dl class="facts panel">
      <Fact name="Received">
        <Time at={message.at} to="second" />
      </Fact>
      <Fact name="Size">{message.size.toLocaleString('en')} bytes</Fact>
      <Fact name="Id at the provider">
        <code>{providerIdOf(message)}</code>
      </Fact>
      <Fact name="From" isLong>
        {seen(read.from ?? '')}
      </Fact>
      <Fact name="Recipients, also by bcc" isLong>
        {message.recipients.join(', ')}
      </Fact>
      {trackingId === undefined ? null : (
        <Fact name="Journal" isLong>
          <a href={emailPath(application.id, trackingId)}>
            <code>{trackingId}</code>
          </a>
        </Fact>
      )}
    </dl>
  );
}

const Source = ({ summary, text }: { readonly summary: string; readonly text: string }): JSX.Element => (
  <details>
    <summary>{summary}</summary>
    <div class="inside">
      <Text text={text} />
    </div>
  </details>
);
