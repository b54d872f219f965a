import { constants } from 'node:crypto';
import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { SecureContextOptions, TLSSocket } from 'node:tls';

/** TLS material of a listener. Texts in PEM. */
export interface TlsMaterial {
  /** The certificate, followed by its intermediates. */
  readonly cert: string;
  readonly key: string;
  /** If given, each client must present a certificate of one of these authorities. */
  readonly clientCa?: string | undefined;
  readonly minVersion: '1.2' | '1.3';
}

/** A TLS handshake that failed. */
export interface HandshakeFailure {
  /** A code such as `ERR_SSL_HTTP_REQUEST`, or the flaw of the client's certificate. */
  readonly cause: string;
  /** The client only went away, as scanners and health checks of load balancers do, or sent nothing. */
  readonly isDeparture: boolean;
}

/** TLS of a listener. */
export interface TlsOptions {
  readonly material: TlsMaterial;
  readonly onFailure: (failure: HandshakeFailure) => void;
}

/** Longest wait for the end of a handshake, in milliseconds. */
const HANDSHAKE_MS = 10_000;
const DEPARTURES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ERR_TLS_HANDSHAKE_TIMEOUT']);

/** A server for HTTP/1.1. Without `tls` it listens without TLS. */
export function createHttpServer(options: ServerOptions, tls: TlsOptions | undefined): Server {
  if (tls === undefined) return createServer(options);
  const { material, onFailure } = tls;
  const server = createTlsServer({
    ...options,
    ...contextOf(material),
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: HANDSHAKE_MS,
    requestCert: material.clientCa !== undefined,
    rejectUnauthorized: true,
  });
  // Node passes a failed handshake on as 'clientError', whose listeners would answer it with HTTP.
  server.removeAllListeners('tlsClientError');
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
    onFailure(failureOf(error, socket));
    socket.destroy();
  });
  server.on('secureConnection', keepPaused);
  return server;
}

/**
 * While a client does not read its answers, Node pauses its parser. Already decrypted data would still reach the
 * parser, which then fails (HPE_PAUSED), and the client's further requests would be lost. With a listener of `data`,
 * Node's server reads the connection as a stream, which keeps the data until it goes on.
 */
function keepPaused(socket: TLSSocket & { readonly _paused?: boolean }): void {
  socket.on('data', () => {});
  // As Node does by itself for connections that it does not read as streams.
  socket.on('resume', () => {
    if (socket._paused === true) socket.pause();
  });
}

/**
 * From now on, handshakes of a server use other material. Open connections go on with theirs. Earlier sessions are not
 * resumed, because each context encrypts tickets with its own keys: a removed authority admits no client.
 * @returns false if the server stays as it was, because only a restart can turn TLS, or certificates of clients, on or
 *   off
 */
export function renewTls(server: Server, before: TlsMaterial | undefined, now: TlsMaterial | undefined): boolean {
  if (before === undefined || now === undefined) return before === now;
  if (JSON.stringify(before) === JSON.stringify(now)) return true;
  if ((before.clientCa === undefined) !== (now.clientCa === undefined)) return false;
  (server as TlsServer).setSecureContext(contextOf(now));
  return true;
}

function contextOf({ cert, key, clientCa, minVersion }: TlsMaterial): SecureContextOptions {
  return {
    cert,
    key,
    ...(clientCa === undefined ? {} : { ca: clientCa }),
    minVersion: `TLSv${minVersion}`,
    // A client could make the server work for handshake after handshake on one connection.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}

function failureOf({ code, message }: NodeJS.ErrnoException, { authorizationError }: TLSSocket): HandshakeFailure {
  // Node reports no separate error if it closes a connection because of the client's certificate.
  if (authorizationError) return { cause: String(authorizationError), isDeparture: false };
  const cause = code ?? message;
  return { cause, isDeparture: DEPARTURES.has(cause) };
}
