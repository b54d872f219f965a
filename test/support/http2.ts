import {
  type ClientHttp2Session,
  connect,
  createSecureServer,
  createServer,
  type ServerHttp2Session,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';

export interface Http2Server {
  readonly port: number;
  /** Sends all requests over one HTTP/2 connection. */
  fetch(request: Request): Promise<Response>;
  close(): Promise<void>;
}

interface Listening {
  address(): unknown;
  close(done: () => void): unknown;
  on(event: 'session', listener: (session: ServerHttp2Session) => void): unknown;
}

/**
 * Starts a real HTTP/2 server on a free port of 127.0.0.1. With a certificate it uses TLS, and also accepts HTTP/1.1
 * clients.
 */
export async function listenHttp2(
  listener: (request: never, response: never) => unknown,
  certificate?: { readonly cert: string; readonly key: string },
): Promise<Http2Server> {
  const on = listener as Parameters<typeof createServer>[1];
  const server = certificate ? createSecureServer({ ...certificate, allowHTTP1: true }, on) : createServer(on);
  const served = http2Client(server, certificate?.cert);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return served();
}

/**
 * Prepares a client of a server. Call it before the server listens, and call the result when the server listens.
 * @param ca the certificate to trust, if the server uses TLS
 */
export function http2Client(server: Listening, ca?: string): () => Http2Server {
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => void sessions.add(session));
  return () => {
    const { port } = server.address() as AddressInfo;
    const client = ca ? connect(`https://127.0.0.1:${port}`, { ca }) : connect(`http://127.0.0.1:${port}`);
    client.on('error', () => {});
    return {
      port,
      fetch: (request) => fetchOver(client, request),
      close: () =>
        new Promise((resolve) => {
          client.destroy();
          server.close(() => resolve());
          for (const session of sessions) session.destroy();
        }),
    };
  };
}

async function fetchOver(client: ClientHttp2Session, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const hasBody = request.body !== null;
  const stream = client.request(
    { ':method': request.method, ':path': pathname + search, ...Object.fromEntries(request.headers) },
    { endStream: !hasBody, signal: request.signal },
  );
  const responding = new Promise<[Headers, number]>((resolve, reject) => {
    stream.on('error', reject).on('close', () => reject(new Error(`closed with code ${stream.rstCode}`)));
    stream.on('response', (fields) => {
      const headers = new Headers();
      for (const [name, value] of Object.entries(fields)) {
        if (!name.startsWith(':')) for (const one of [value ?? []].flat()) headers.append(name, one);
      }
      resolve([headers, Number(fields[':status'])]);
    });
  });
  if (request.body)
    Readable.fromWeb(request.body as never)
      .on('error', () => stream.close(8))
      .pipe(stream);
  const [headers, status] = await responding;
  const isBodyless = [204, 205, 304].includes(status) || request.method === 'HEAD';
  if (isBodyless) stream.resume();
  return new Response(isBodyless ? null : (Readable.toWeb(stream) as ReadableStream), { status, headers });
}
