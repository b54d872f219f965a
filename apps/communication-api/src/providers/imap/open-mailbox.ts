import { isIP, type Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { ImapFlow, type ImapFlowOptions } from 'imapflow';
import { EgressError, type Net } from '../../security/net.ts';
import type { MailServer } from './credentials.ts';
import { endFloods, endManyLines, MAX_IMAP_BYTES, MAX_IMAP_LINES } from './end-floods.ts';
import { loopbackTo } from './loopback.ts';
import { ServerError, type ServerFailure } from './server-error.ts';

/** For the connection, and once more for the server's first words. */
const CONNECT_TIMEOUT_MS = 10_000;
/** For each answer of the server. */
const ANSWER_TIMEOUT_MS = 60_000;

/** Bounds of one response of a server. The service reads headers and lists, never whole emails. */
const MAX_LINE_BYTES = 1_048_576;
const MAX_LITERAL_BYTES = 2_097_152;
const MAX_RESPONSE_BYTES = 4_194_304;

/** Codes of a server's NO if the user and the password may still be right (RFC 5530). */
const TEMPORARY_CODES = ['UNAVAILABLE', 'INUSE', 'LIMIT', 'SERVERBUG', 'CONTACTADMIN'];
const TIMEOUT_CODES = ['CONNECT_TIMEOUT', 'GREETING_TIMEOUT', 'UPGRADE_TIMEOUT', 'ETIMEOUT', 'ETIMEDOUT'];
/** How OpenSSL and Node.js name a certificate that is not trusted, or a TLS that they cannot agree on. */
export const TLS_CODE = /^(ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH)/;
const LOST_CODES = [
  ...['NoConnection', 'EConnectionClosed', 'StateLogout', 'ClosedAfterConnectText', 'ClosedAfterConnectTLS'],
  ...['ECONNRESET', 'ECONNREFUSED', 'ECONNABORTED', 'EPIPE', 'EHOSTUNREACH', 'ENETUNREACH'],
];

/**
 * Connects to an IMAP server and logs in. The caller closes the connection.
 * @throws ServerError
 */
export async function openMailbox(server: MailServer, net: Net, signal: AbortSignal): Promise<ImapFlow> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]);
  // TLS is imapflow's: it must know whether the connection is secure.
  const socket = await net
    .connect({ host: server.host, port: server.port, tls: false }, deadline)
    .catch((cause: unknown) => {
      throw new ServerError(cause instanceof EgressError ? cause.failure : 'refused', cause);
    });
  // An error before imapflow listens must not end the process.
  socket.on('error', () => {});
  endFloods(socket, MAX_IMAP_BYTES);
  let client: ImapFlow | undefined;
  const end = (): void => {
    client?.close();
    socket.destroy();
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    client = new ImapFlow(await optionsFor(server, socket));
    endManyLines(socket, readerOf(client), MAX_IMAP_LINES);
    // The command that waits for an answer gets the error, too.
    client.on('error', () => {});
    await client.connect();
    return client;
  } catch (error) {
    end();
    throw new ServerError(signal.aborted ? 'timeout' : failureOf(error as ImapError), error);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

/** The stream from which imapflow reads its lines: only there, lines can be counted that came through TLS. */
const readerOf = (client: ImapFlow): Writable => (client as unknown as { readonly streamer: Writable }).streamer;

/** imapflow makes its connections itself. With TLS it takes a socket instead; else it is led to one. */
async function optionsFor({ host, port, encryption, user, password }: MailServer, socket: Socket) {
  const isTls = encryption === 'tls';
  const place = isTls ? { host, port } : { host: '127.0.0.1', port: await loopbackTo(socket) };
  return {
    ...place,
    // TLS names only hosts, not addresses.
    servername: isIP(host) === 0 ? host : undefined,
    secure: isTls,
    // True: STARTTLS, or no login.
    ...(isTls ? {} : { doSTARTTLS: encryption === 'starttls' }),
    tls: {
      ...(isTls ? { socket } : {}),
      // imapflow may be connected to the loopback interface, and a host may be an address.
      checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate),
    },
    auth: { user, pass: password },
    clientInfo: { name: 'communication-api' },
    logger: false,
    disableAutoIdle: true,
    // Compression would need memory for each connection, and the service reads little.
    disableCompression: true,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: ANSWER_TIMEOUT_MS,
    maxLineLength: MAX_LINE_BYTES,
    maxLiteralSize: MAX_LITERAL_BYTES,
    maxResponseSize: MAX_RESPONSE_BYTES,
  } satisfies ImapFlowOptions;
}

/** The fields that imapflow adds to its errors. */
interface ImapError extends Error {
  readonly code?: string;
  readonly reason?: string;
  readonly tlsFailed?: boolean;
  readonly authenticationFailed?: boolean;
  readonly responseStatus?: string;
  readonly serverResponseCode?: string;
}

/** Why a connection or a login failed. */
function failureOf(error: ImapError): ServerFailure {
  const { code = '', reason, tlsFailed, authenticationFailed, responseStatus, serverResponseCode = '' } = error;
  // imapflow also reports a failed login if the connection was lost meanwhile.
  if (authenticationFailed === true && responseStatus === 'NO')
    return TEMPORARY_CODES.includes(serverResponseCode) ? 'unavailable' : 'credentials';
  if (TIMEOUT_CODES.includes(code)) return 'timeout';
  if (tlsFailed === true || TLS_CODE.test(code)) return 'tls';
  // With BYE the server said why it ends the connection, for example because there are too many.
  if (LOST_CODES.includes(code)) return reason === undefined ? 'refused' : 'unavailable';
  return 'protocol';
}

/** Whether an error means that the connection to the server is lost. */
export const isLost = (error: unknown): boolean => {
  const { code = '' } = error as ImapError;
  return LOST_CODES.includes(code) || TIMEOUT_CODES.includes(code);
};
