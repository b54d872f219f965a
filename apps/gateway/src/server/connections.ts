import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { problemReply } from 'headgate/http';
import { refuseExchange } from '../exchange/answers.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';
import { Connection, WaitingRequests } from './connection.ts';
import { OpenConnections } from './open-connections.ts';

/** Tracks which exchanges run on which connection, and answers malformed HTTP, which never becomes a request. */
export interface Connections {
  /** Connections that are open now. */
  readonly open: number;
  /** Exchanges that run now, or wait for their turn on their connection. */
  readonly running: number;
  /**
   * Returns false if the connection closes with an earlier answer: the client would never see an answer to this
   * request.
   * @param onClosed called when the response is closed
   */
  add(exchange: Exchange, onClosed?: () => void): boolean;
  /**
   * Calls `start` when it is the turn of an exchange that was added: only a few exchanges of a connection run at a
   * time. Never if the client is gone by then.
   */
  whenTurn(exchange: Exchange, start: () => void): void;
  /** Whether nothing runs on this connection. */
  isQuiet(socket: Duplex): boolean;
  /** From now on the last answer of each connection says `Connection: close`. */
  closeAfterLast(): void;
  /**
   * Closes each connection after its answers, and each idle connection soon. Resolves when nothing runs and no
   * connection is open.
   */
  drain(): Promise<void>;
}

/** Options of {@link watchConnections}. */
export interface ConnectionsOptions {
  /** Most connections at a time. One more takes the place of the connection that has been idle for the longest time. */
  readonly maxConnections: number;
  readonly newId: () => string;
  /** Called when malformed HTTP is answered. */
  readonly onMalformed: (id: string, status: number, reason: string) => void;
}

/**
 * How long an idle connection stays open while the gateway drains, in milliseconds: its client may be sending a
 * request, because no answer announced that the connection closes. Then also the longest wait for the client to close
 * its side.
 */
const IDLE_MS = 500;

/**
 * Answers malformed HTTP with the error object, after the answers to earlier requests of the connection, and then
 * closes the connection.
 */
export function watchConnections(
  server: Server,
  { maxConnections, newId, onMalformed }: ConnectionsOptions,
): Connections {
  const bySocket = new WeakMap<Duplex, Connection>();
  const all = new WaitingRequests();
  const broken = new WeakSet<Duplex>();
  let running = 0;
  let closing = false;
  let draining = false;
  let onDrained: (() => void)[] = [];

  const connectionOf = (socket: Duplex): Connection => {
    const known = bySocket.get(socket) ?? new Connection(socket, all);
    bySocket.set(socket, known);
    if (closing) known.closeAfterLast();
    return known;
  };
  const exchangesOn = (socket: Duplex): readonly Exchange[] => bySocket.get(socket)?.exchanges ?? [];
  const answerRaw = (socket: Duplex, refusal: Refusal, reason: string): void => {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const id = newId();
    onMalformed(id, refusal.status, reason);
    socket.end(rawReply(id, refusal), () => socket.destroy());
  };
  const answerInTurn = (socket: Duplex, refusal: Refusal, reason: string): void => {
    const last = exchangesOn(socket).at(-1);
    if (last === undefined) answerRaw(socket, refusal, reason);
    else last.response.once('close', () => answerRaw(socket, refusal, reason));
  };

  const closeAfterLast = (): void => {
    closing = true;
    for (const socket of open.all) bySocket.get(socket)?.closeAfterLast();
  };
  /** Closes an idle connection if its client sends nothing for a moment. */
  const closeIdle = (socket: Socket): void => {
    const bytes = socket.bytesRead;
    const timer = setTimeout(() => {
      if (!open.idle.has(socket) || !socket.writable) return;
      // The head of a request is on its way.
      if (socket.bytesRead > bytes) closeIdle(socket);
      else closeGently(socket);
    }, IDLE_MS);
    timer.unref();
  };
  const checkDrained = (): void => {
    if (running > 0 || open.all.size > 0) return;
    for (const resolve of onDrained) resolve();
    onDrained = [];
  };

  /** After a CONNECT Node ignores the events of the connection, but earlier requests can still run on it. */
  const watchDetached = (socket: Duplex): void => {
    // A slow answer goes on when the client reads a part of it.
    socket.on('drain', () => {
      for (const { response } of exchangesOn(socket)) response.emit('drain');
    });
    // The end of a connection is noticed only if the connection is read.
    socket.once('end', () => socket.destroy()).resume();
  };

  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (broken.has(socket)) return;
    broken.add(socket);
    const refusal = refusalFor(error);
    const incomplete = exchangesOn(socket).find(({ request }) => !request.complete);
    if (!socket.writable) socket.destroy();
    else if (incomplete?.answered) incomplete.request.socket.destroySoon();
    else if (incomplete !== undefined) refuseExchange(incomplete, refusal, { cut: true });
    else answerInTurn(socket, refusal, error.code ?? 'unknown');
  });
  const onClose = (socket: Socket): void => {
    // Node emits 'close' only for the response whose turn it is. The responses that wait behind it get the event here.
    for (const { response } of exchangesOn(socket)) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
    checkDrained();
  };
  const open = new OpenConnections(server, {
    maxConnections,
    onClose,
    onIdle: (socket) => draining && closeIdle(socket),
  });
  server.on('connect', (_request, socket) => {
    socket.on('error', () => {});
    watchDetached(socket);
    answerInTurn(socket, refuse(400, 'errors/malformed_request', 'CONNECT is not supported.'), 'CONNECT');
  });

  return {
    get open() {
      return open.all.size;
    },
    get running() {
      return running;
    },
    add(exchange, onClosed) {
      const { socket } = exchange.request;
      const connection = connectionOf(socket);
      if (!connection.isLasting) return false;
      connection.add(exchange);
      open.begin(socket);
      running++;
      exchange.response.once('close', () => {
        connection.delete(exchange);
        open.end(socket);
        running--;
        checkDrained();
        onClosed?.();
      });
      return true;
    },
    whenTurn: (exchange, start) => connectionOf(exchange.request.socket).whenTurn(exchange, start),
    isQuiet: (socket) => bySocket.get(socket)?.isQuiet ?? true,
    closeAfterLast,
    drain() {
      draining = true;
      closeAfterLast();
      for (const socket of open.idle) closeIdle(socket);
      return new Promise((resolve) => {
        onDrained.push(resolve);
        checkDrained();
      });
    },
  };
}

/**
 * Closes a connection by FIN, and reads on until the client closes its side. If the process closed both sides at once,
 * the system would answer the client's next bytes with a reset, which can take the last answer from the client.
 */
function closeGently(socket: Socket): void {
  socket.end();
  const timer = setTimeout(() => socket.destroy(), IDLE_MS).unref();
  socket.once('close', () => clearTimeout(timer));
}

function refusalFor({ code }: NodeJS.ErrnoException): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return refuse(431, 'errors/headers_too_large', 'The head of the request is larger than 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return refuse(408, 'errors/request_timeout', 'The request did not arrive in time.');
    default:
      return refuse(400, 'errors/malformed_request', 'The request is not valid HTTP.');
  }
}

const PHRASES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

function rawReply(id: string, refusal: Refusal): string {
  const { status, headers, body } = problemReply(refusal.problem(id), { 'x-request-id': id, connection: 'close' });
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${PHRASES[status]}\r\n${fields.join('')}\r\n${body}`;
}
