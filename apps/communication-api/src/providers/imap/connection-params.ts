import type { ConnectionParams } from '../../domain/service-error.ts';
import type { ImapCredentials, MailServer } from './credentials.ts';

const ENCRYPTION: Readonly<Record<MailServer['encryption'], string>> = {
  tls: 'SSL',
  starttls: 'STARTTLS',
  none: 'none',
};

/** What was tried, for the answer to a 401. It has no password. */
export const connectionParamsOf = ({ imap, smtp }: ImapCredentials): ConnectionParams => ({
  imap_host: imap.host,
  imap_port: imap.port,
  imap_user: imap.user,
  imap_encryption: ENCRYPTION[imap.encryption],
  smtp_host: smtp.host,
  smtp_port: smtp.port,
  smtp_user: smtp.user,
});
