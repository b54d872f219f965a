const GMAIL = 'https://www.googleapis.com/auth/gmail.';

/** Stores drafts and sends them. */
export const COMPOSE = `${GMAIL}compose`;
/** Reads the header fields of messages: for replies, and to find what was sent. */
export const METADATA = `${GMAIL}metadata`;
/** Sends, and nothing else. */
export const SEND = `${GMAIL}send`;

/** What a user can be asked for: `drafts`, so that nothing is sent twice, or `send`, which gives away the least. */
export const PERMISSIONS = { drafts: [COMPOSE, METADATA], send: [SEND] } as const;
