import type { JSX } from 'preact';
import type { Conversation } from '../../webhooks/conversations.ts';
import type { ConversationError } from '../../webhooks/delivery.ts';
import { Badge, Time } from './parts.tsx';

const ERRORS: Readonly<Record<ConversationError, string>> = {
  forbidden: 'the service may not connect to this address or port',
  unresolved: 'the name of the host has no address',
  refused: 'the host refused the connection',
  timeout: 'no answer came in time',
  tls: 'the certificate of the host is wrong, or TLS failed',
  connection_lost: 'the connection ended before the answer, or the answer is not HTTP',
};

/** The result of an attempt, in words. */
export const outcomeText = ({ status, error }: Pick<Conversation, 'status' | 'error'>): string =>
  status === null ? ERRORS[error as ConversationError] : `answered ${status}`;

export const OutcomeBadge = ({ outcome }: Pick<Conversation, 'outcome'>): JSX.Element =>
  outcome === 'delivered' ? <Badge label="Delivered" tone="good" /> : <Badge label="Failed" tone="bad" />;

/** The time of an attempt, its result, and the next step. */
export const AttemptLine = ({ attempt: row }: { readonly attempt: Conversation }): JSX.Element => (
  <p class="soft">
    <Time at={row.created_at} to="second" />, attempt {row.attempt}: {outcomeText(row)}, after {row.duration_ms} ms.
    {row.next_attempt_at === null ? null : (
      <>
        {' '}
        Next attempt: <Time at={row.next_attempt_at} to="second" />.
      </>
    )}
  </p>
);
