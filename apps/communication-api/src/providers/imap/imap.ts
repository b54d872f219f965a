import { MailRecords } from '../../security/mail-records.ts';
import type { Provider } from '../provider.ts';
import { Mailboxes } from './connection.ts';
import { createDiscovery, type Discover } from './discovery.ts';
import { createImapLinkFlow } from './link-flow.ts';
import { ImapMailProvider } from './mail.ts';
import { SmtpPools } from './smtp-pools.ts';

/** The imap provider, with its connections. */
export interface ImapProvider extends Provider {
  /** Closes all connections: those in use when they are not any more. */
  close(): void;
}

/**
 * Mailboxes at any server that speaks IMAP and SMTP.
 * @param discover finds the servers of an address. Default: it asks the domain and the system's name servers
 */
export function createImap(discover: Discover = createDiscovery(new MailRecords())): ImapProvider {
  const mailboxes = new Mailboxes();
  const pools = new SmtpPools();
  return {
    name: 'imap',
    title: 'IMAP',
    supports: new Set(['emails']),
    link: createImapLinkFlow(discover),
    mail: new ImapMailProvider(pools, mailboxes),
    close: () => {
      mailboxes.close();
      pools.close();
    },
  };
}
