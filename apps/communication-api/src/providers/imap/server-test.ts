import type { Socket } from 'node:net';
import nodemailer, { type NodemailerError } from 'nodemailer';
import { EgressError, type Net } from '../../security/net.ts';
import type { ImapCredentials, MailServer } from './credentials.ts';
import { endFloods, MAX_SMTP_BYTES } from './end-floods.ts';
import { openMailbox } from './open-mailbox.ts';
import { ServerError, type ServerFailure } from './server-error.ts';

const CONNECT_MS = 10_000;
const ANSWER_MS = 15_000;

/** The faults of each half of an account. Undefined: the login works. */
export interface TestResult {
  readonly imap: ServerFailure | undefined;
  readonly smtp: ServerFailure | undefined;
}

/** Logs in to both servers of an account, at the same time. */
export async function testServers({ imap, smtp }: ImapCredentials, net: Net, signal: AbortSignal): Promise<TestResult> {
  const [imapFailure, smtpFailure] = await Promise.all([testImap(imap, net, signal), testSmtp(smtp, net, signal)]);
  return { imap: imapFailure, smtp: smtpFailure };
}

async function testImap(server: MailServer, net: Net, signal: AbortSignal): Promise<ServerFailure | undefined> {
  try {
    const client = await openMailbox(server, net, signal);
    await client.logout().catch(() => undefined);
    client.close();
    return undefined;
  } catch (error) {
    return error instanceof ServerError ? error.failure : 'protocol';
  }
}

async function testSmtp(server: MailServer, net: Net, signal: AbortSignal): Promise<ServerFailure | undefined> {
  const { host, port, encryption, user, password } = server;
  const isTls = encryption === 'tls';
  let socket: Socket | undefined;
  const end = (): void => void socket?.destroy();
  const transport = nodemailer.createTransport({
    host,
    port,
    auth: { user, pass: password },
    secure: isTls,
    requireTLS: encryption === 'starttls',
    ignoreTLS: encryption === 'none',
    // A server that takes emails of strangers only takes those for its own users.
    forceAuth: true,
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: ANSWER_MS,
    getSocket: (_, done) => {
      net.connect({ host, port, tls: isTls }, signal).then(
        (connection) => {
          socket = connection;
          endFloods(connection, MAX_SMTP_BYTES);
          done(null, { connection, secured: isTls });
        },
        (error) => done(error),
      );
    },
  });
  signal.addEventListener('abort', end, { once: true });
  try {
    await transport.verify();
    return undefined;
  } catch (error) {
    return signal.aborted ? 'timeout' : failureOf(error as NodemailerError);
  } finally {
    signal.removeEventListener('abort', end);
    transport.close();
  }
}

function failureOf(error: NodemailerError): ServerFailure {
  if (error instanceof EgressError) return error.failure;
  const { code, responseCode = 0 } = error;
  if (responseCode >= 400 && responseCode < 500) return 'unavailable';
  if (code === 'EAUTH') return responseCode > 504 ? 'credentials' : 'protocol';
  if (code === 'ETLS') return 'tls';
  if (code === 'ETIMEDOUT') return 'timeout';
  return responseCode === 0 ? 'refused' : 'protocol';
}
