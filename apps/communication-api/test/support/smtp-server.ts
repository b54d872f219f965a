import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { inject } from 'vitest';
import { cleanUpLater } from './clean-up.ts';
import type { MailUser } from './dovecot.ts';
import { secret } from './secret.ts';

/** A mail server for sending, which users log in to. The certificate of the tests is its certificate. */
export interface SmtpServer {
  /** Without TLS at first. STARTTLS is possible, and a login without it, too. */
  readonly port: number;
  /** With TLS from the beginning. */
  readonly tlsPort: number;
  /** Adds a user, or changes the password of one. */
  user(name: string, password?: string): MailUser;
  /** The logins that were accepted: the user, and whether the connection was secure. */
  readonly logins: { readonly user: string; readonly secure: boolean }[];
}

/** Starts a server on two free ports of 127.0.0.1. It ends with the test file. */
export async function startSmtpServer(options: SMTPServerOptions = {}): Promise<SmtpServer> {
  const users = new Map<string, string>();
  const logins: SmtpServer['logins'] = [];
  const { cert, key } = inject('certificate');
  const listen = async (secure: boolean): Promise<number> => {
    const server = new SMTPServer({
      cert,
      key,
      secure,
      allowInsecureAuth: true,
      onAuth({ username = '', password }, session, done) {
        if (password === undefined || users.get(username) !== password) return done(new Error('Wrong password'));
        logins.push({ user: username, secure: session.secure });
        done(null, { user: username });
      },
      ...options,
    });
    server.on('error', () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server.server, 'listening');
    cleanUpLater(() => new Promise<void>((resolve) => server.close(resolve)));
    return (server.server.address() as AddressInfo).port;
  };
  return {
    port: await listen(false),
    tlsPort: await listen(true),
    user(address, password = secret()) {
      users.set(address, password);
      return { address, password };
    },
    logins,
  };
}
