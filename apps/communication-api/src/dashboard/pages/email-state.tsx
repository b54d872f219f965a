import type { JSX } from 'preact';
import { type EmailState, type JournalState, shownState } from '../../domain/email-state.ts';
import { Badge, Note } from './parts.tsx';

const STATES = {
  sending: { label: 'Sending', tone: 'quiet' },
  sent: { label: 'Sent', tone: 'good' },
  failed: { label: 'Failed', tone: 'bad' },
  unknown: { label: 'Unknown', tone: 'warn' },
} as const satisfies Record<EmailState, unknown>;

const MEANINGS: Readonly<Record<JournalState, string>> = {
  dispatched: 'The provider was asked to send it, and the answer is not known yet.',
  sent: 'The provider took it.',
  failed: 'It was not sent, and no retry with the same Idempotency-Key sends it.',
  unknown:
    'It is not known whether it was sent: the connection ended, or the process died, before the provider answered. The service does not send it again, and looks for it in the mailbox during an hour.',
};

export const stateLabel = (state: EmailState): string => STATES[state].label;

export const EmailBadge = ({ state }: { readonly state: JournalState }): JSX.Element => (
  <Badge {...STATES[shownState(state)]} />
);

export const EmailStateNote = ({ state }: { readonly state: JournalState }): JSX.Element => (
  <Note tone={STATES[shownState(state)].tone}>
    <p>{MEANINGS[state]}</p>
  </Note>
);
