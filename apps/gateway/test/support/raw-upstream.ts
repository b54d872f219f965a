import { createServer, type Socket } from 'node:net';
import { afterFile } from 'headgate-testbed/after-file';

/** An upstream that sends exact bytes. */
export interface RawUpstream {
  readonly url: string;
  /** Heads of the requests so far, with what came with them. */
  readonly requests: string[];
  /** Every connection so far. */
  readonly connections: Socket[];
  /** Connections that are open. */
  open(): number;
  /** Handles all requests from now on in this way. */
  behave(onRequest: OnRequest): void;
}

/**
 * @param socket the connection that the request came on
 * @param request the bytes that came first
 * @param count how many requests came on this connection, with this one
 */
export type OnRequest = (socket: Socket, request: string, count: number) => void;

/** The bytes of a response with a length. */
export const okay = (body = 'ok', fields = ''): string =>
  `HTTP/1.1 200 OK\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`;

/** Starts a TCP server on a free port of `host`. A request is every piece of data that begins with a request line. */
export async function startRawUpstream(
  onRequest: OnRequest = (socket) => void socket.write(okay()),
  host = '127.0.0.1',
): Promise<RawUpstream> {
  let current = onRequest;
  const requests: string[] = [];
  const connections: Socket[] = [];
  const server = createServer((socket) => {
    let count = 0;
    connections.push(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1');
      if (!/^[A-Z]+ \S+ HTTP\/1\.1\r\n/.test(text)) return;
      requests.push(text);
      count += 1;
      current(socket, text, count);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  afterFile(() => {
    for (const socket of connections) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const { port } = server.address() as { port: number };
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    requests,
    connections,
    open: () => connections.filter(({ destroyed }) => !destroyed).length,
    behave: (next) => {
      current = next;
    },
  };
}
