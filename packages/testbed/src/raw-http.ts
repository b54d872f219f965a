import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';

/** A response, or the part of it that arrived before the connection broke. */
export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in one flat list, as received. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly text: string;
  /** Whether the connection broke before the end of the response. */
  readonly broken: boolean;
}

export interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  /** @default a new connection */
  readonly agent?: Agent;
  /** Sends it over TLS. */
  readonly tls?: ConnectionOptions | undefined;
}

/** The ports for which `send` and `openRaw` use TLS by default. */
export const tlsPorts = new Map<number, ConnectionOptions>();

/** Sends one request with node:http; `path` is sent unchanged. Rejects if there is no response. */
export function send(port: number, ask: Ask): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', path, headers = {}, body, agent, tls = tlsPorts.get(port) } = ask;
    // node:http itself gives the body of a DELETE no length.
    const framed = body === undefined ? headers : { 'content-length': Buffer.byteLength(body), ...headers };
    const options = { host: '127.0.0.1', port, method, path, headers: framed, agent: agent ?? false };
    const outgoing = tls === undefined ? request(options) : requestTls({ ...options, ...(tls as object) });
    outgoing.on('error', reject);
    outgoing.on('response', (answer) => {
      const chunks: Buffer[] = [];
      const done = () => {
        const all = Buffer.concat(chunks);
        const { statusCode = 0, headers: got, rawHeaders, complete } = answer;
        const text = all.toString('utf8');
        resolve({ status: statusCode, headers: got, rawHeaders, body: all, text, broken: !complete });
      };
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', () => {});
      answer.on('close', done);
    });
    outgoing.end(body);
  });
}

/** An agent with one connection that is reused. */
export const oneConnection = (): Agent => new Agent({ keepAlive: true, maxSockets: 1 });

/** Polls until `probe` returns something other than undefined, null and false, and returns that. */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  what: string,
  withinMs = 60_000,
): Promise<Exclude<T, undefined | null | false>> {
  const end = performance.now() + withinMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== null && value !== false) return value as Exclude<T, undefined | null | false>;
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await pause(15);
  }
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A response as received, with its body taken out of the framing. */
export interface RawReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** A socket on which a test sends exact bytes. */
export interface RawConnection {
  readonly socket: Socket;
  write(bytes: string | Buffer): void;
  received(): string;
  /** The complete responses so far. */
  replies(): RawReply[];
  /** Waits for so many complete responses. */
  waitFor(count: number): Promise<RawReply[]>;
  /** Resolves when the other side closes the connection. */
  readonly closed: Promise<void>;
  destroy(): void;
  /** Ends it with a reset. */
  reset(): void;
}

/** @param tls opens it over TLS */
export function openRaw(port: number, tls = tlsPorts.get(port)): Promise<RawConnection> {
  return new Promise((resolve, reject) => {
    const tcp = connect({ host: '127.0.0.1', port });
    const socket = tls === undefined ? tcp : connectTls({ host: '127.0.0.1', socket: tcp, ...tls });
    const chunks: Buffer[] = [];
    const received = () => Buffer.concat(chunks).toString('latin1');
    const replies = () => parseReplies(received());
    const closed = new Promise<void>((done) => {
      socket.on('close', () => done());
      socket.on('end', () => done());
    });
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.once('error', reject);
    socket.on('error', () => {});
    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
      resolve({
        socket,
        write: (bytes) => void socket.write(bytes),
        received,
        replies,
        waitFor: async (count) => {
          await eventually(() => replies().length >= count, `${count} responses, got: ${received()}`);
          return replies();
        },
        closed,
        destroy: () => void socket.destroy(),
        reset: () => void tcp.resetAndDestroy(),
      });
    });
  });
}

/** The bytes of a request with `host` and these headers. If there is a body, Content-Length is added. */
export function rawRequest(method: string, target: string, headers: Record<string, string> = {}, body = ''): string {
  const fields = Object.entries({ host: 'gateway.test', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const length = body === '' ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`;
  return `${method} ${target} HTTP/1.1\r\n${fields.join('')}${length}\r\n${body}`;
}

/** The complete responses in the text. None of them may be a response to HEAD. */
function parseReplies(text: string): RawReply[] {
  const replies: RawReply[] = [];
  let rest = text;
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n');
    if (headEnd < 0) return replies;
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n');
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const body = cutBody(headers, rest.slice(headEnd + 4));
    if (body === undefined) return replies;
    const status = Number(statusLine.split(' ')[1]);
    if (status >= 200) replies.push({ status, headers, text: Buffer.from(body.text, 'latin1').toString('utf8') });
    rest = body.rest;
  }
}

function cutBody(headers: Readonly<Record<string, string>>, text: string): { text: string; rest: string } | undefined {
  if (headers['transfer-encoding'] !== 'chunked') {
    const length = Number(headers['content-length'] ?? 0);
    return text.length < length ? undefined : { text: text.slice(0, length), rest: text.slice(length) };
  }
  let body = '';
  let rest = text;
  for (;;) {
    const lineEnd = rest.indexOf('\r\n');
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(rest.slice(0, lineEnd), 16);
    if (rest.length < lineEnd + 2 + size + 2) return undefined;
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size);
    rest = rest.slice(lineEnd + 2 + size + 2);
    if (size === 0) return { text: body, rest };
  }
}
