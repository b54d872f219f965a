import type { JSX } from 'preact';
import type { Account } from '../../accounts/accounts.ts';
import { type AccountStatus, shownStatus } from '../../domain/account-status.ts';
import { Badge, Note, Time } from './parts.tsx';

const STATUSES = {
  running: { label: 'Running', tone: 'good' },
  disconnected: { label: 'Disconnected', tone: 'bad' },
  error: { label: 'Provider away', tone: 'warn' },
  paused: { label: 'Paused', tone: 'quiet' },
} as const satisfies Record<AccountStatus, unknown>;

export const statusLabel = (status: AccountStatus): string => STATUSES[status].label;

export const AccountBadge = ({ account }: { readonly account: Account }): JSX.Element => (
  <Badge {...STATUSES[shownStatus(account)]} />
);

/** The meaning of an account's status, its reason, and the next step. */
export function AccountStatusNote({ account }: { readonly account: Account }): JSX.Element {
  const { status, paused_at, status_reason: reason } = account;
  const { tone } = STATUSES[shownStatus(account)];
  return (
    <Note tone={tone}>
      {paused_at === null ? null : (
        <p>
          Paused since <Time at={paused_at} />. It sends nothing: a request gets 403 <code>errors/action_required</code>{' '}
          until it is resumed.
          {status === 'running' ? null : ' Behind the pause, this is its status:'}
        </p>
      )}
      {paused_at !== null && status === 'running' ? null : <StatusText status={status} reason={reason} />}
    </Note>
  );
}

function StatusText({ status, reason }: { status: Account['status']; reason: string | null }): JSX.Element {
  if (status === 'running') return <p>It sends email. Nothing has to be done.</p>;
  const because = (
    <>
      {reasonText(status, reason)}
      {reason === null ? null : (
        <>
          {' '}
          (<code>{reason}</code>)
        </>
      )}
    </>
  );
  return status === 'disconnected' ? (
    <p>{because}. It sends nothing until its user links it again: make a link to reconnect, and send it to the user.</p>
  ) : (
    <p>
      {because}. Each request still tries, and the first one that succeeds ends this status. If it lasts, look at the
      provider’s own status page, or at the server of the mailbox.
    </p>
  );
}

function reasonText(status: 'disconnected' | 'error', reason: string | null): string {
  if (reason?.startsWith('errors/invalid_credentials')) return 'The provider refused the password or the token twice';
  if (reason === 'errors/network_down') return 'The server of the provider could not be reached';
  if (reason === 'errors/service_unavailable') return 'The provider has answered that it is not available';
  return status === 'disconnected'
    ? 'The provider does not allow the access to the mailbox any more'
    : 'The last request to the provider failed';
}
