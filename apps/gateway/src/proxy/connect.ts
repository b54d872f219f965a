import { lookup as systemLookup } from 'node:dns';
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** Longest wait for a connection, with its TLS handshake, in milliseconds. */
const CONNECT_MS = 10_000;
/** After this silence the system checks whether the other side is still there, in milliseconds. */
const PROBE_MS = 60_000;

/**
 * Begins a new connection. `onReady` is called when it can be written to. A connection that fails, or takes too long,
 * emits 'close' instead.
 */
export type Connect = (onReady: () => void) => Socket;

/**
 * Connects to the host and port of a URL; with TLS if its protocol is `https:`.
 * @param lookup finds the addresses of a name; the system's by default
 */
export function connectorTo({ protocol, hostname, port }: URL, lookup: LookupFunction = systemLookup): Connect {
  const host = hostname.replace(/^\[|\]$/g, '');
  const isTls = protocol === 'https:';
  const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: PROBE_MS };
  const target = { host, port: Number(port || (isTls ? 443 : 80)), lookup: shared(lookup), ...socketOptions };
  // A name is sent to the server, so that it can choose a certificate. An address may not be (RFC 6066, section 3).
  const tls = { ...target, ALPNProtocols: ['http/1.1'], ...(isIP(host) === 0 && { servername: host }) };
  /** The last handshake's session: with it the next handshake is shorter. */
  let session: Buffer | undefined;
  return (onReady) => {
    const socket = isTls ? connectTls({ ...tls, ...(session && { session }) }) : connectTcp(target);
    const timer = setTimeout(() => socket.destroy(connectTimeout()), CONNECT_MS);
    socket.once('close', () => clearTimeout(timer));
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      onReady();
    });
    if (isTls) {
      socket.on('session', (next: Buffer) => {
        session = next;
      });
    }
    return socket;
  };
}

function connectTimeout(): Error {
  return Object.assign(new Error('the connection took too long'), { code: 'ETIMEDOUT' });
}

/**
 * Connections that begin while a look-up runs share its result. The system runs only two look-ups at a time, and the
 * others would wait in line: if each took 100 ms, there would be 20 new connections per second.
 * @param lookup always called for the same name, with the same options
 */
function shared(lookup: LookupFunction): LookupFunction {
  let waiting: Parameters<LookupFunction>[2][] = [];
  return (name, options, done) => {
    if (waiting.push(done) > 1) return;
    lookup(name, options, (...result) => {
      const served = waiting;
      waiting = [];
      for (const give of served) give(...result);
    });
  };
}
