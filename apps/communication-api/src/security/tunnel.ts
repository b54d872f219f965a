import { request } from 'node:http';
import { isIPv4, isIPv6, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { SocksClient, type SocksClientError } from 'socks';
import type { CustomProxy } from '../domain/proxy.ts';
import { EgressError } from './net.ts';

/** The host beyond a proxy. */
interface Beyond {
  /**
   * Addresses that were judged. The proxy gets an address and no name, so that it cannot look up a different address.
   */
  readonly addresses: readonly string[];
  readonly port: number;
}

/** RFC 1929 writes each length into one byte. */
const MAX_CREDENTIAL_BYTES = 255;
const CONTROL = /\p{Cc}/u;

/**
 * Asks a proxy for a connection.
 * @param socket connected to the proxy. It is destroyed if the proxy refuses
 * @returns the same socket, now connected to the target
 * @throws EgressError
 */
export async function tunnel(socket: Socket, proxy: CustomProxy, beyond: Beyond): Promise<Socket> {
  try {
    return proxy.protocol === 'http' || proxy.protocol === 'https'
      ? await throughHttp(socket, proxy, beyond)
      : await throughSocks(socket, proxy, beyond);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** The method CONNECT of HTTP. */
async function throughHttp(socket: Socket, { username, password }: CustomProxy, beyond: Beyond): Promise<Socket> {
  const address = addressFor(beyond);
  const authority = `${isIPv6(address) ? `[${address}]` : address}:${beyond.port}`;
  const credentials = Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64');
  const headers = {
    host: authority,
    ...(username !== undefined && { 'proxy-authorization': `Basic ${credentials}` }),
  };
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new EgressError('refused', 'The proxy ended the connection.'));
    request({ method: 'CONNECT', path: authority, headers, createConnection: () => socket })
      .once('connect', ({ statusCode = 0 }, _socket: Duplex, head) => {
        // Tinyproxy answers 401 to a wrong password, although 407 is right.
        if (statusCode === 407 || statusCode === 401) return reject(wrongCredentials());
        if (statusCode < 200 || statusCode > 299) return reject(refusedByProxy());
        // The server may already have sent bytes.
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      })
      // Not an answer to CONNECT.
      .once('response', fail)
      .on('error', fail)
      .once('close', fail)
      .end();
  });
}

async function throughSocks(
  socket: Socket,
  { protocol, username = '', password = '' }: CustomProxy,
  beyond: Beyond,
): Promise<Socket> {
  const isVersion4 = protocol === 'socks4';
  const host = isVersion4 ? beyond.addresses.find((address) => isIPv4(address)) : addressFor(beyond);
  if (host === undefined) throw new EgressError('refused', 'A SOCKS 4 proxy reaches IPv4 addresses only.');
  // SOCKS 4 sends the name of the user before the proxy says anything, so it must not be a command for something else
  // that listens there.
  for (const text of [username, password])
    if (CONTROL.test(text) || Buffer.byteLength(text) > MAX_CREDENTIAL_BYTES) throw wrongCredentials();
  await SocksClient.createConnection({
    command: 'connect',
    proxy: { host: '127.0.0.1', port: 1080, type: isVersion4 ? 4 : 5, userId: username, password },
    destination: { host, port: beyond.port },
    existing_socket: socket,
  }).catch(({ message }: SocksClientError) => {
    // The error itself contains the password.
    throw /Authentication failed|no accepted authentication|RejectedIdent/.test(message)
      ? wrongCredentials()
      : refusedByProxy();
  });
  await keepFirstBytes(socket);
  return socket;
}

/** The client of `socks` emits the first bytes of the server, and lets the socket flow, before its user listens. */
async function keepFirstBytes(socket: Socket): Promise<void> {
  const chunks: Buffer[] = [];
  const collect = (chunk: Buffer): void => void chunks.push(chunk);
  socket.on('data', collect);
  await setImmediate();
  socket.off('data', collect);
  socket.pause();
  if (chunks.length > 0) socket.unshift(Buffer.concat(chunks));
  // As in a new socket: it flows as soon as there is a listener.
  (socket as { readableFlowing: boolean | null }).readableFlowing = null;
}

/** More proxies reach IPv4 than IPv6. */
const addressFor = ({ addresses }: Beyond): string =>
  addresses.find((address) => isIPv4(address)) ?? (addresses[0] as string);

const wrongCredentials = (): EgressError =>
  new EgressError('proxy_credentials', 'The proxy refused its user name or password.');
const refusedByProxy = (): EgressError => new EgressError('refused', 'The proxy did not connect to the host.');
