import type { ConnectionParams } from '../../domain/service-error.ts';

export const ENCRYPTIONS = ['tls', 'starttls', 'none'] as const;

/** `tls`: from the beginning; `starttls`: after the first words, always; `none`: never. */
export type Encryption = (typeof ENCRYPTIONS)[number];

/** A server for mail, and how to log in to it. */
export interface MailServer {
  readonly host: string;
  readonly port: number;
  readonly encryption: Encryption;
  readonly user: string;
  readonly password: string;
}

/** The stored credentials of an imap account. */
export interface ImapCredentials {
  readonly imap: MailServer;
  readonly smtp: MailServer;
}

/** The parts of an account's servers that an error may show. */
export const connectionParamsOf = ({ imap, smtp }: ImapCredentials): ConnectionParams => ({
  imap_host: imap.host,
  imap_port: imap.port,
  imap_user: imap.user,
  imap_encryption: imap.encryption,
  smtp_host: smtp.host,
  smtp_port: smtp.port,
  smtp_user: smtp.user,
});
