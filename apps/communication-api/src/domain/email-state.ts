/** The state of an email, as people and clients see it. */
export const EMAIL_STATES = ['sending', 'sent', 'failed', 'unknown'] as const;

export type EmailState = (typeof EMAIL_STATES)[number];

/** The states of a row of the journal. `dispatched`: the provider is being asked, or was. */
export type JournalState = 'prepared' | 'dispatched' | Exclude<EmailState, 'sending'>;

export const shownState = (state: JournalState): EmailState =>
  state === 'prepared' || state === 'dispatched' ? 'sending' : state;

export const journalStatesOf = (state: EmailState): readonly JournalState[] =>
  state === 'sending' ? ['prepared', 'dispatched'] : [state];
