import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import { counted } from '../../domain/counted.ts';
import { shownState } from '../../domain/email-state.ts';
import type { Send } from '../../journal/send-records.ts';
import type { Rooms } from '../../rooms.ts';
import type { Here } from '../here.ts';
import type { Inputs } from '../inputs.ts';
import { accountPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { EmailBadge, EmailStateNote } from './email-state.tsx';
import { FaultSummary } from './forms.tsx';
import { Done, Fact, Note } from './parts.tsx';
import { ResolveForm } from './resolve-form.tsx';

interface EmailPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly email: Send;
  /** Undefined: it is removed. */
  readonly account: Account | undefined;
  /** Undefined: the email is not tracked. */
  readonly hits: Awaited<ReturnType<Rooms['tracking']['countsOf']>> | undefined;
  readonly canResolve: boolean;
  readonly inputs: Inputs;
  /** Whether a person just resolved it. */
  readonly isResolved: boolean;
}

/** An email, as the journal stores it. Its text and its recipients are not shown: the API does not show them either. */
export function EmailPage(props: EmailPageProps): JSX.Element {
  const { here, application, email, canResolve, inputs, isResolved } = props;
  const { id, state, error } = email;
  return (
    <ApplicationLayout here={here} application={application} title="Email" part="emails" faulty={inputs.isFaulty}>
      <FaultSummary faults={inputs.faults} />
      <Done text={isResolved && state !== 'unknown' ? 'The email is resolved.' : undefined} />
      <div class="what">
        <h1>Email</h1>
        <EmailBadge state={state} />
      </div>
      <p class="soft">
        <code>{id}</code>
      </p>
      <EmailStateNote state={state} />
      {error === null ? null : (
        <Note tone="bad">
          <p>
            {error.status} <code>{error.type}</code>: {error.detail}
          </p>
        </Note>
      )}
      {state !== 'unknown' ? null : canResolve ? (
        <ResolveForm here={here} application={application} email={email} inputs={inputs} />
      ) : (
        <p class="soft">Your role may only look at the emails of a production application.</p>
      )}
      <Facts {...props} />
    </ApplicationLayout>
  );
}

function Facts({ application, email, account, hits }: EmailPageProps): JSX.Element {
  const { state, attempt, message_id, provider_id, provider_immutable_id, draft_ref, label, rejected } = email;
  return (
    <section aria-labelledby="journal">
      <h2 id="journal">Journal</h2>
      <dl class="facts panel">
        <Fact name="Account">
          {account === undefined ? (
            <>
              <code>{email.account_id}</code>, which is removed
            </>
          ) : (
            <a href={accountPath(application.id, account.id)}>{account.name}</a>
          )}
        </Fact>
        <Fact name="State">
          {shownState(state)}
          {shownState(state) === state ? '' : ` (${state})`}
        </Fact>
        {attempt > 0 && <Fact name="Looked for">{counted(attempt, 'time')}</Fact>}
        <Moment name="Requested" at={email.created_at} />
        <Moment name="Handover to the provider began" at={email.dispatched_at} />
        <Moment name="Outcome known" at={email.settled_at} />
        <Fact name="Idempotency-Key">{email.idempotency_key === null ? 'None, or older than 24 hours' : 'Known'}</Fact>
        <Fact name="Sent as a draft">{draft_ref === null ? 'No' : 'Yes'}</Fact>
        <Fact name="Message-ID" isLong>
          <code>{message_id}</code>
        </Fact>
        <Fact name="Id at the provider" isLong>
          {provider_id !== null && account?.provider === 'mock' ? (
            <a href={accountPath(application.id, account.id, `mailbox/${provider_id}`)}>
              <code>{provider_id}</code>
            </a>
          ) : (
            <Code text={provider_id} />
          )}
        </Fact>
        {provider_immutable_id === null ? null : (
          <Fact name="Immutable id" isLong>
            <Code text={provider_immutable_id} />
          </Fact>
        )}
        {label === null ? null : <Fact name="Label">{label}</Fact>}
        {hits === undefined ? null : (
          <>
            {email.tracks_opens ? <Fact name="Opens by persons">{hits.opens}</Fact> : null}
            {email.tracks_links ? <Fact name="Clicks by persons">{hits.clicks}</Fact> : null}
          </>
        )}
        <Fact name="Refused recipients">{rejected.length === 0 ? 'None' : rejected.join(', ')}</Fact>
      </dl>
    </section>
  );
}

const Code = ({ text }: { readonly text: string | null }): JSX.Element =>
  text === null ? <>Not known</> : <code>{text}</code>;

/** A time, to the second. */
const Moment = ({ name, at }: { readonly name: string; readonly at: Date | null }): JSX.Element => {
  const iso = at?.toISOString();
  return (
    <Fact name={name}>
      {iso === undefined ? 'Not yet' : <time dateTime={iso}>{`${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`}</time>}
    </Fact>
  );
};
