import { formatDuration } from 'headgate';
import type { ComponentChildren, JSX } from 'preact';
import type { Application } from '../../applications/applications.ts';
import { counted } from '../../domain/counted.ts';
import type { PreviewedWindow } from '../../domain/limit-preview.ts';
import type { Here } from '../here.ts';
import type { LimitTarget } from '../limit-target.ts';
import type { Impact, LimitView, RejectedAccount } from '../limit-views.ts';
import { accountPath } from '../paths.ts';
import { ApplicationLayout } from './application-layout.tsx';
import { FormOf } from './forms.tsx';
import { durationText, WindowBars } from './window-bars.tsx';

interface LimitPreviewPageProps {
  readonly here: Here;
  readonly application: Application;
  readonly target: LimitTarget;
  /** The limit after the change. */
  readonly limit: Pick<LimitView, 'label' | 'value' | 'text' | 'seen'>;
  readonly isReset: boolean;
  /** The present effect of the change. */
  readonly children: ComponentChildren;
}

/** The effect of a change of a limit, before the change. */
export function LimitPreviewPage(props: LimitPreviewPageProps): JSX.Element {
  const { here, application, target, isReset, children } = props;
  const { label, value, text, seen } = props.limit;
  const isOfAccount = target.account !== undefined;
  const like = isOfAccount ? ', as it is for the provider' : ', as it is recommended';
  return (
    <ApplicationLayout here={here} application={application} title="Preview" part={isOfAccount ? 'accounts' : 'limits'}>
      <h1>Preview</h1>
      <section class="panel">
        <p>
          <strong>{label}</strong> of {target.name} becomes <strong>{text === '' ? 'unlimited' : text}</strong>
          {isReset ? like : ''}.
        </p>
        {children}
        <FormOf {...here.form(`${target.path}/limits`)}>
          <input type="hidden" name="route" value={value} />
          <input type="hidden" name="seen" value={seen} />
          {isReset ? <input type="hidden" name="reset" value="yes" /> : null}
          <input type="hidden" name="windows" value={text} />
          <button type="submit">{isReset ? 'Reset the limit' : 'Change the limit'}</button>
        </FormOf>
        <p>
          <a href={target.path}>Back, without a change</a>
        </p>
      </section>
    </ApplicationLayout>
  );
}

const usedText = (windows: readonly PreviewedWindow[]): string =>
  windows.map(({ used, max, durationMs }) => `${used} of ${max} per ${formatDuration(durationMs)}`).join(', ');

const waitText = (windows: readonly PreviewedWindow[]): string =>
  durationText(Math.max(0, ...windows.map(({ resetMs }) => resetMs)));

/** The effect of a change on the only account that it is for. */
export function ImpactOnAccount({ windows }: { readonly windows: readonly PreviewedWindow[] }): JSX.Element {
  const rejecting = windows.filter(({ rejects }) => rejects);
  return (
    <>
      {rejecting.length === 0 ? (
        <p>The next request of this account would be accepted by this limit.</p>
      ) : (
        <p class="fault">
          {`Requests of this account would be rejected now, for the next ${waitText(rejecting)}: ${usedText(rejecting)}.`}
        </p>
      )}
      <WindowBars windows={windows} />
    </>
  );
}

/** The effect of a change on the accounts of a provider. */
export function ImpactOnProvider({ impact }: { readonly impact: Impact }): JSX.Element {
  const { lookedAt, hasMore, withOwnLimit, rejected, stillRejected, accepted } = impact;
  const own =
    withOwnLimit === 1
      ? '1 of them has its own limit, which stays.'
      : `${withOwnLimit} of them have their own limits, which stay.`;
  return (
    <>
      {rejected.length === 0 ? (
        <p>No account that is accepted now would be rejected.</p>
      ) : (
        <p class="fault">{`${counted(rejected.length, 'account')} would be rejected now, and ${rejected.length === 1 ? 'is' : 'are'} accepted at present:`}</p>
      )}
      <Accounts list={rejected} />
      {stillRejected.length === 0 ? null : (
        <p>{`${counted(stillRejected.length, 'account')} would still be rejected, as at present:`}</p>
      )}
      <Accounts list={stillRejected} />
      {accepted.length === 0 ? null : (
        <p>{`${counted(accepted.length, 'account')} would be accepted, and ${accepted.length === 1 ? 'is' : 'are'} rejected at present:`}</p>
      )}
      <Accounts list={accepted} />
      <p class="soft">
        {hasMore
          ? `Looked at: the ${lookedAt} accounts that were used or linked last. The application owns more of them.`
          : `Looked at: ${lookedAt === 1 ? 'the only account' : `all ${lookedAt} accounts`} of the provider in this application.`}
        {withOwnLimit === 0 ? '' : ` ${own}`}
      </p>
    </>
  );
}

const Accounts = ({ list }: { readonly list: readonly RejectedAccount[] }): JSX.Element | null =>
  list.length === 0 ? null : (
    <ul class="rows">
      {list.map(({ account, windows }) => (
        <li key={account.id}>
          <a class="title" href={accountPath(account.application_id, account.id)}>
            {account.name}
          </a>
          <p class="soft">
            {usedText(windows)}, for {waitText(windows)}
          </p>
        </li>
      ))}
    </ul>
  );
