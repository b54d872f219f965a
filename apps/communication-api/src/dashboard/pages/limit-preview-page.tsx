import { formatDuration } from 'headgate';
import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import type { PreviewedWindow } from '../../domain/limit-preview.ts';
import type { Here } from '../here.ts';
import { accountPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { FormOf } from './parts.tsx';
import { durationText, WindowBars } from './window-bars.tsx';

interface LimitPreviewPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly account: Account;
  readonly label: string;
  /** What a form calls the limit. */
  readonly value: string;
  readonly isReset: boolean;
  /** The windows of the limit after the change. */
  readonly text: string;
  readonly seen: string;
  readonly windows: readonly PreviewedWindow[];
}

/** What a change of a limit would do now, before it is done. */
export function LimitPreviewPage(props: LimitPreviewPageProps): JSX.Element {
  const { here, application, account, label, value, isReset, text, seen, windows } = props;
  const rejecting = windows.filter(({ rejects }) => rejects);
  const waitMs = Math.max(0, ...rejecting.map(({ resetMs }) => resetMs));
  return (
    <ApplicationLayout here={here} application={application} title="Preview" part="accounts">
      <h1>Preview</h1>
      <section class="panel">
        <p>
          <strong>{label}</strong> of {account.name} becomes <strong>{text}</strong>
          {isReset ? ', as it is for the provider.' : '.'}
        </p>
        {rejecting.length === 0 ? (
          <p>The next request of this account would be accepted by this limit.</p>
        ) : (
          <p class="fault">
            {`Requests of this account would be rejected now, for the next ${durationText(waitMs)}: ${rejecting
              .map(({ used, max, durationMs }) => `${used} of ${max} per ${formatDuration(durationMs)}`)
              .join(', ')}.`}
          </p>
        )}
        <WindowBars windows={windows} />
        <FormOf {...here.form(accountPath(application.id, account.id, 'limits'))}>
          <input type="hidden" name="route" value={value} />
          <input type="hidden" name="seen" value={seen} />
          {isReset ? <input type="hidden" name="reset" value="yes" /> : null}
          <input type="hidden" name="windows" value={text} />
          <button type="submit">{isReset ? 'Reset the limit' : 'Change the limit'}</button>
        </FormOf>
        <p>
          <a href={accountPath(application.id, account.id)}>Back, without a change</a>
        </p>
      </section>
    </ApplicationLayout>
  );
}
