import { createHash } from 'node:crypto';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterFile } from './after-file.ts';
import { pause } from './raw-http.ts';

/**
 * A request that reached the upstream. It is recorded when its head arrives, so that broken uploads are recorded too.
 */
export interface Seen {
  readonly method: string;
  /** The request target as received. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /** Bytes of the body so far. */
  bytes(): number;
  body(): Buffer;
  sha256(): string;
  /** Resolves at the end of the body: true if the body is complete. */
  readonly whole: Promise<boolean>;
  /** Resolves at the end of the exchange: true if the whole response was sent. */
  readonly over: Promise<boolean>;
}

/**
 * How the upstream handles a request. It is called when the head arrives; wait for `seen.whole` to read the body first.
 */
export type Behaviour = (seen: Seen, response: ServerResponse, request: IncomingMessage) => void | Promise<void>;

export interface Upstream {
  readonly port: number;
  readonly url: string;
  /** Every request so far, oldest first. */
  readonly seen: Seen[];
  last(): Seen;
  /** Handles all requests from now on with this behaviour. */
  behave(behaviour: Behaviour): void;
  /** Returns to the start: forgets its requests, and handles requests with its first behaviour. */
  reset(): void;
  close(): Promise<void>;
}

/** Starts a real node:http server on a free port, or on `port`. By default it responds 200 `{"ok":true}`. */
export async function startUpstream(behaviour: Behaviour = answer(), port = 0): Promise<Upstream> {
  let current = behaviour;
  const seen: Seen[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    const record = watch(request, response);
    seen.push(record);
    response.on('error', () => {});
    void current(record, response, request);
  });
  server.keepAliveTimeout = 60_000;
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const { port: bound } = server.address() as AddressInfo;
  const upstream: Upstream = {
    port: bound,
    url: `http://127.0.0.1:${bound}`,
    seen,
    last: () => {
      const record = seen.at(-1);
      if (record === undefined) throw new Error('Nothing reached the upstream.');
      return record;
    },
    behave: (next) => {
      current = next;
    },
    reset: () => {
      seen.length = 0;
      current = behaviour;
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  afterFile(upstream.close);
  return upstream;
}

function watch(request: IncomingMessage, response: ServerResponse): Seen {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('error', () => {});
  const body = () => Buffer.concat(chunks);
  return {
    method: request.method ?? '',
    url: request.url ?? '',
    headers: request.headers,
    rawHeaders: request.rawHeaders,
    bytes: () => chunks.reduce((sum, chunk) => sum + chunk.length, 0),
    body,
    sha256: () => createHash('sha256').update(body()).digest('hex'),
    whole: new Promise((resolve) => {
      request.on('end', () => resolve(true));
      request.on('close', () => resolve(request.complete));
    }),
    over: new Promise((resolve) => response.on('close', () => resolve(response.writableFinished))),
  };
}

export interface AnswerOptions {
  readonly status?: number;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  readonly delayMs?: number;
}

/** Reads the whole request, then responds. */
export function answer(options: AnswerOptions = {}): Behaviour {
  const { status = 200, headers = { 'content-type': 'application/json' }, body = '{"ok":true}', delayMs = 0 } = options;
  return async (seen, response) => {
    await seen.whole;
    if (delayMs > 0) await pause(delayMs);
    response.writeHead(status, headers);
    response.end(body);
  };
}

/** Reads the whole request, then breaks the connection without a response. */
export const breakBeforeAnswer: Behaviour = async (seen, response) => {
  await seen.whole;
  response.socket?.destroy();
};

/** Sends the head and a part of the body, then breaks the connection. */
export function breakMidAnswer(headers: OutgoingHttpHeaders, part: string): Behaviour {
  return async (seen, response) => {
    await seen.whole;
    response.writeHead(200, headers);
    response.write(part);
    await pause(50);
    response.socket?.destroy();
  };
}

/** Delays every response until `release()`. `waiting()` returns how many are delayed. */
export function held(then: Behaviour = answer()): { behaviour: Behaviour; release(): void; waiting(): number } {
  let open: () => void = () => {};
  let count = 0;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    behaviour: async (seen, response, request) => {
      count += 1;
      await gate;
      count -= 1;
      await then(seen, response, request);
    },
    release: () => open(),
    waiting: () => count,
  };
}
