import type { Provider } from '../provider.ts';
import { Mailboxes } from './connection.ts';

/** The imap provider, with its connections. */
export interface ImapProvider extends Provider {
  /** Closes all connections: those in use when they are not any more. */
  close(): void;
}

/** Mailboxes at any server that speaks IMAP and SMTP. */
export function createImap(): ImapProvider {
  const mailboxes = new Mailboxes();
  return {
    name: 'imap',
    title: 'IMAP',
    supports: new Set(['emails']),
    close: () => mailboxes.close(),
  };
}
