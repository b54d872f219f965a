const GMAIL = 'https://www.googleapis.com/auth/gmail.';

/** Stores drafts and sends them. */
export const COMPOSE = `${GMAIL}compose`;
/** Reads the header fields of messages: for replies, and to find sent emails. */
export const METADATA = `${GMAIL}metadata`;
/** Sends, and nothing else. */
export const SEND = `${GMAIL}send`;

/** The permissions that users may be asked for: `drafts` sends nothing twice, `send` gives away the least. */
export const PERMISSIONS = { drafts: [COMPOSE, METADATA], send: [SEND] } as const;
