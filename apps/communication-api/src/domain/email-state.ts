/** The state of an email, as people and clients see it. */
export const EMAIL_STATES = ['sending', 'sent', 'failed', 'unknown'] as const;

export type EmailState = (typeof EMAIL_STATES)[number];

/** The state of a row of the journal. `dispatched`: the provider is being asked, or was. */
export type JournalState = 'dispatched' | Exclude<EmailState, 'sending'>;

export const shownState = (state: JournalState): EmailState => (state === 'dispatched' ? 'sending' : state);

export const journalStateOf = (state: EmailState): JournalState => (state === 'sending' ? 'dispatched' : state);
