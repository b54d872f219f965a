import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { RequestTrace } from '../exchange/request-trace.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { Applicant, ConnectionUser, Lease } from './lease.ts';
import { type ResponseListener, ResponseReader } from './response-reader.ts';

/** The request that an {@link UpstreamRequest} sends. */
export interface RequestMessage {
  readonly method: string;
  /** The whole head, with the empty line at its end; characters up to U+00FF. */
  readonly head: string;
  /** Bytes are copied as soon as there is a connection. */
  readonly body: Readable | Uint8Array | null;
  /** Whether the head says that the body is chunked. */
  readonly isChunked: boolean;
}

/** Hears what becomes of an {@link UpstreamRequest}. Called no more after `onEnd`, `onError` or `destroy`. */
export interface UpstreamListener extends ResponseListener {
  /** The request gets a connection: from now on the upstream may receive something. */
  onSend(): void;
  /** After all: the system refused everything. `onError` follows. */
  onUnsent(): void;
  /** All that arrived of the response was read, and more is to come. */
  onMore(): void;
  /** The response is whole. */
  onEnd(): void;
  onError(error: Error): void;
}

/**
 * The same listener in the context of its request. Without it, a connection's reports are in the context of the request
 * that opened the connection.
 */
export function inContext(trace: RequestTrace | undefined, listener: UpstreamListener): UpstreamListener {
  if (trace === undefined) return listener;
  return {
    onSend: trace.bind(() => listener.onSend()),
    onUnsent: trace.bind(() => listener.onUnsent()),
    onHead: trace.bind((head) => listener.onHead(head)),
    onData: trace.bind((chunk) => listener.onData(chunk)),
    onMore: trace.bind(() => listener.onMore()),
    onEnd: trace.bind(() => listener.onEnd()),
    onError: trace.bind((error) => listener.onError(error)),
  };
}

/**
 * One request and its response on a connection of the pool. It is never sent twice. Afterwards the connection can be
 * used again, if both were whole.
 */
export class UpstreamRequest implements ConnectionUser {
  readonly #message: RequestMessage;
  readonly #listener: UpstreamListener;
  readonly #reader: ResponseReader;
  readonly #lease: Lease;
  #socket: Socket | undefined;
  /** Undefined once it was written. */
  #head: string | undefined;
  #isWritten = false;
  #isOver = false;

  constructor(message: RequestMessage, pool: ConnectionPool, applicant: Applicant, listener: UpstreamListener) {
    this.#message = message;
    this.#head = message.head;
    this.#listener = listener;
    this.#reader = new ResponseReader(message.method === 'HEAD', listener);
    this.#lease = pool.createLease(applicant, this);
  }

  /** Whether no connection has been found or begun for it. */
  get isWaiting(): boolean {
    return this.#lease.isWaiting;
  }

  /** Sends the request when there is a connection for it. Call it once. */
  send(): void {
    this.#lease.request();
  }

  pause(): void {
    if (!this.#isOver) this.#socket?.pause();
  }

  resume(): void {
    if (!this.#isOver) this.#socket?.resume();
  }

  /** Sends and reads no more, and closes the connection. */
  destroy(): void {
    this.#isOver = true;
    this.#lease.cancel();
  }

  onConnection(socket: Socket): void {
    this.#socket = socket;
    this.#listener.onSend();
    const { body } = this.#message;
    if (body === null || body instanceof Uint8Array) {
      if (body !== null) this.#writeWith(body);
      else this.#flushHead();
      this.#isWritten = true;
      if (socket.errored !== null) this.#listener.onUnsent();
      return;
    }
    body.on('data', (chunk: Buffer) => this.#onBody(body, chunk));
    body.once('end', () => this.#onBodyEnd());
    // The head must not wait for a slow body. If both come together, they are sent in one write.
    setImmediate(() => this.#flushHead());
  }

  onData(chunk: Buffer): void {
    if (this.#isOver) return;
    try {
      this.#reader.read(chunk);
    } catch (error) {
      this.#fail(error as Error);
      return;
    }
    if (this.#isOver) return;
    if (this.#reader.isOver) this.#finish();
    else this.#listener.onMore();
  }

  onDrain(): void {
    const { body } = this.#message;
    if (body instanceof Readable) body.resume();
  }

  onUpstreamEnd(): void {
    if (this.#isOver) return;
    if (this.#reader.end()) this.#finish();
    else this.#fail(closedError());
  }

  onClosed(error: Error | undefined): void {
    if (!this.#isOver) this.#fail(error ?? closedError());
  }

  #flushHead(): void {
    const socket = this.#socket as Socket;
    if (this.#head === undefined || this.#isOver || socket.destroyed) return;
    socket.write(this.#head, 'latin1');
    this.#head = undefined;
  }

  /** Writes head and body at once: each write costs a system call. */
  #writeWith(body: Uint8Array): void {
    const [before, after] = this.#message.isChunked ? [`${body.length.toString(16)}\r\n`, '\r\n0\r\n\r\n'] : ['', ''];
    const head = Buffer.from(`${this.#head}${before}`, 'latin1');
    this.#head = undefined;
    this.#socket?.write(Buffer.concat([head, body, Buffer.from(after, 'latin1')]));
  }

  #onBody(body: Readable, chunk: Buffer): void {
    const { isChunked } = this.#message;
    const socket = this.#socket as Socket;
    if (this.#isOver || chunk.length === 0) return;
    const isCorked = isChunked || this.#head !== undefined;
    if (isCorked) socket.cork();
    this.#flushHead();
    if (isChunked) socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
    let hasRoom = socket.write(chunk);
    if (isChunked) hasRoom = socket.write('\r\n', 'latin1');
    if (isCorked) process.nextTick(uncork, socket);
    if (!hasRoom) body.pause();
  }

  #onBodyEnd(): void {
    const socket = this.#socket as Socket;
    if (this.#isOver) return;
    const isUnsent = this.#head !== undefined;
    this.#flushHead();
    if (this.#message.isChunked) socket.write('0\r\n\r\n', 'latin1');
    this.#isWritten = true;
    if (isUnsent && socket.errored !== null) this.#listener.onUnsent();
  }

  #finish(): void {
    this.#isOver = true;
    const socket = this.#socket as Socket;
    const { keepsAlive, hasMore, keepAliveHint } = this.#reader;
    // If the upstream answered without reading the whole request, the connection cannot serve another request.
    if (keepsAlive && !hasMore && this.#isWritten && socket.writableLength === 0) {
      if (socket.isPaused()) socket.resume();
      this.#lease.release(keepAliveHint === undefined ? undefined : idleMsOf(keepAliveHint));
    } else this.#lease.cancel();
    this.#listener.onEnd();
  }

  #fail(error: Error): void {
    this.#isOver = true;
    this.#lease.cancel();
    this.#listener.onError(error);
  }
}

/** When the upstream closes an idle connection, in milliseconds, if its field `keep-alive` says so. */
function idleMsOf(hint: string): number | undefined {
  const seconds = /\btimeout=(\d{1,9})/.exec(hint)?.[1];
  return seconds ? Number(seconds) * 1_000 : undefined;
}

function closedError(): Error {
  return Object.assign(new Error('the connection was closed'), { code: 'ECONNRESET' });
}

function uncork(socket: Socket): void {
  socket.uncork();
}
