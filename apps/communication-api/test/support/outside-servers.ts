import { once } from 'node:events';
import { createServer as createHttp, type RequestListener } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTls, type TLSSocket } from 'node:tls';
import { inject } from 'vitest';
import { cleanUpLater } from './clean-up.ts';

/** A server that connections of the service may reach. It ends after the test file. */
export interface OutsideServer {
  readonly port: number;
  /** Connections until now. */
  connections: number;
}

/** Sends a greeting and then everything back, in upper case. */
export const startEcho = (greet = 'hello\r\n', host = '127.0.0.1', port = 0): Promise<OutsideServer> =>
  listening(
    createServer((socket) => echo(socket, greet)),
    host,
    port,
  );

/** The same with TLS, and the test certificate. `onSecure` sees each connection. */
export const startTlsEcho = (onSecure: (socket: TLSSocket) => void = () => undefined): Promise<OutsideServer> => {
  const options = { ...inject('certificate'), ALPNProtocols: ['imap', 'http/1.1'] };
  return listening(
    createTls(options, (socket) => {
      onSecure(socket);
      echo(socket, 'hello\r\n');
    }),
  );
};

export const startHttp = (handler: RequestListener): Promise<OutsideServer> => listening(createHttp(handler));

export const startHttps = (handler: RequestListener): Promise<OutsideServer> =>
  listening(createHttps({ ...inject('certificate') }, handler));

/** A server that handles each connection as the test says. */
export const startRaw = (onConnection: (socket: Socket) => void, host = '127.0.0.1'): Promise<OutsideServer> =>
  listening(createServer(onConnection), host);

function echo(socket: Socket, greet: string): void {
  socket.on('error', () => undefined).on('data', (chunk: Buffer) => socket.write(chunk.toString().toUpperCase()));
  socket.write(greet);
}

/** Listens until the end of the test file. */
export async function listening(server: Server, host = '127.0.0.1', port = 0): Promise<OutsideServer> {
  const sockets = new Set<Socket>();
  const outside = { port: 0, connections: 0 };
  server.on('connection', (socket: Socket) => {
    outside.connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  server.listen(port, host);
  await once(server, 'listening');
  outside.port = (server.address() as AddressInfo).port;
  cleanUpLater(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return outside;
}

/** Reads from a socket until the text arrived. */
export async function readUntil(socket: Socket, text: string): Promise<string> {
  let received = '';
  while (!received.includes(text)) {
    const [chunk] = (await once(socket, 'data', { signal: AbortSignal.timeout(20_000) })) as [Buffer];
    received += chunk.toString();
  }
  return received;
}
