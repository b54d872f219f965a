import type { JSX } from 'preact';
import type { ListedSession } from '../../people/member-sessions.ts';
import type { Here } from '../here.ts';
import { PATHS } from '../paths.ts';
import { AskedButton, FormOf } from './forms.tsx';
import { LoginLayout } from './login-layout.tsx';
import { Badge, Done, Time } from './parts.tsx';

interface SessionsPageProps {
  readonly here: Here;
  readonly sessions: readonly ListedSession[];
  readonly done: string | undefined;
}

/** The browsers in which the person who looks at it signed in. */
export const SessionsPage = ({ here, sessions, done }: SessionsPageProps): JSX.Element => (
  <LoginLayout here={here} title="Sessions" part="sessions">
    <Done text={done} />
    <h1>Sessions</h1>
    <p class="soft">
      End each session that you do not know, and change your password. A session ends by itself 12 hours after its last
      use, and 7 days after the sign-in.
    </p>
    <ul class="rows">
      {sessions.map((session) => (
        <SessionRow key={session.id} here={here} session={session} />
      ))}
    </ul>
    {sessions.length > 1 ? (
      <FormOf {...here.form(`${PATHS.sessions}/end-others`)}>
        <button type="submit" class="bad">
          End all other sessions
        </button>
      </FormOf>
    ) : null}
  </LoginLayout>
);

function SessionRow({ here, session }: { readonly here: Here; readonly session: ListedSession }): JSX.Element {
  const { id, browser = 'Unknown browser', address = 'an unknown address', createdAt, lastUsedAt } = session;
  return (
    <li>
      <div class="what">
        <span class="title">{browser}</span>
        {id === here.sessionId ? <Badge label="This browser" tone="good" /> : null}
      </div>
      <p class="soft url">
        Signed in <Time at={createdAt} /> from {address}, last used <Time at={lastUsedAt} />
      </p>
      {id === here.sessionId ? null : (
        <AskedButton
          {...here.form(`${PATHS.sessions}/${id}/end`)}
          label="End"
          subject={`the session of ${browser}`}
          consequence="This browser is signed out at its next request."
        />
      )}
    </li>
  );
}
