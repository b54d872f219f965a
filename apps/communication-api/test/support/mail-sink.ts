import { randomUUID } from 'node:crypto';
import { ImapFlow } from 'imapflow';
import type { ImapCredentials } from '../../src/providers/imap/credentials.ts';
import { type Dovecot, type MailUser, startDovecot } from './dovecot.ts';
import { startSmtpServer } from './smtp-server.ts';

/** A user of a mail server that keeps the emails that it got to send. */
export interface SinkUser extends MailUser {
  /** Every message that the server took from this user, in the order of arrival. */
  readonly received: readonly string[];
  /** The emails in the user's folder for sent emails. */
  sentFolder(): readonly string[];
  /** Files a message, like a server that files the emails that it sends, such as Gmail. */
  file(message: string): Promise<void>;
  /** The stored credentials of an account of this user. */
  credentials(ports?: { readonly imap?: number; readonly smtp?: number }): ImapCredentials;
}

/** A server for sending that counts, and a real IMAP server. Both know the same users. */
export interface MailSink {
  readonly smtpPort: number;
  readonly dovecot: Dovecot;
  /** A new user. @param taken is called with a message that the server took, before it says so */
  user(taken?: (message: string, user: SinkUser) => Promise<unknown> | unknown): SinkUser;
}

/** Starts both servers. They end with the test file. */
export async function startMailSink(): Promise<MailSink> {
  const dovecot = await startDovecot();
  const takers = new Map<string, (message: string) => Promise<unknown>>();
  const smtp = await startSmtpServer({
    onData(stream, { user = '' }, done) {
      stream
        .toArray()
        .then((chunks) => takers.get(user)?.(Buffer.concat(chunks as Buffer[]).toString()))
        .then(() => done(), done);
    },
  });
  return {
    smtpPort: smtp.port,
    dovecot,
    user(taken) {
      const { address, password } = dovecot.user(`${randomUUID()}@example.test`);
      smtp.user(address, password);
      const received: string[] = [];
      const both = { host: '127.0.0.1', encryption: 'none', user: address, password } as const;
      const user: SinkUser = {
        ...{ address, password, received },
        sentFolder: () => dovecot.emails(address, 'Sent'),
        file: async (message) => {
          const [host, port] = [dovecot.host, dovecot.imapPort];
          const auth = { user: address, pass: password };
          const client = new ImapFlow({ host, port, auth, secure: false, doSTARTTLS: false, logger: false });
          await client.connect();
          await client.append('Sent', message);
          await client.logout();
        },
        credentials: ({ imap = dovecot.imapPort, smtp: port = smtp.port } = {}) => ({
          imap: { ...both, port: imap },
          smtp: { ...both, port },
        }),
      };
      takers.set(address, async (message) => {
        received.push(message);
        await taken?.(message, user);
      });
      return user;
    },
  };
}
