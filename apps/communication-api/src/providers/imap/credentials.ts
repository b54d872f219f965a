/** A server for mail, and how to log in to it. */
export interface MailServer {
  readonly host: string;
  readonly port: number;
  /** `tls`: from the beginning; `starttls`: after the first words, always; `none`: never. */
  readonly encryption: 'tls' | 'starttls' | 'none';
  readonly user: string;
  readonly password: string;
}

/** What is stored for an imap account. */
export interface ImapCredentials {
  readonly imap: MailServer;
  readonly smtp: MailServer;
}
