import type { Provider } from '../provider.ts';
import { Mailboxes } from './connection.ts';
import { ImapMailProvider } from './mail.ts';
import { SmtpPools } from './smtp-pools.ts';

/** The imap provider, with its connections. */
export interface ImapProvider extends Provider {
  /** Closes all connections: those in use when they are not any more. */
  close(): void;
}

/** Mailboxes at any server that speaks IMAP and SMTP. */
export function createImap(): ImapProvider {
  const mailboxes = new Mailboxes();
  const pools = new SmtpPools();
  return {
    name: 'imap',
    title: 'IMAP',
    supports: new Set(['emails']),
    mail: new ImapMailProvider(pools, mailboxes),
    close: () => {
      mailboxes.close();
      pools.close();
    },
  };
}
