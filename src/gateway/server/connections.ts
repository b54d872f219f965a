import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { problemReply } from '../../http/problem.ts';
import { refuseExchange } from '../exchange/answers.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';

/** Tracks which exchanges run on which connection, and answers malformed HTTP, which never becomes a request. */
export interface Connections {
  /** Exchanges that run now. */
  readonly running: number;
  /**
   * Returns false if the connection closes with an earlier answer: the client would never see an answer to this
   * request.
   */
  add(exchange: Exchange): boolean;
  /** Whether nothing runs on this connection. */
  isQuiet(socket: Duplex): boolean;
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
}

/** Options of {@link watchConnections}. */
export interface ConnectionsOptions {
  readonly newId: () => string;
  /** Called when malformed HTTP is answered. */
  readonly onMalformed: (id: string, status: number, reason: string) => void;
}

/**
 * Answers malformed HTTP with the error object, after the answers to earlier requests of the connection, and then
 * closes the connection.
 */
export function watchConnections(server: Server, { newId, onMalformed }: ConnectionsOptions): Connections {
  const bySocket = new WeakMap<Duplex, Set<Exchange>>();
  const broken = new WeakSet<Duplex>();
  let running = 0;
  let waiting: (() => void)[] = [];

  const exchangesOn = (socket: Duplex): Exchange[] => [...(bySocket.get(socket) ?? [])];
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
  server.on('connection', (socket) => {
    socket.once('close', () => {
      // Node emits 'close' only for the response whose turn it is. The responses that wait behind it get the event
      // here.
      for (const { response } of exchangesOn(socket)) {
        if (response.socket !== null) continue;
        response.destroy();
        response.emit('close');
      }
    });
  });
  server.on('connect', (_request, socket) => {
    socket.on('error', () => {});
    answerInTurn(socket, refuse(400, 'errors/malformed_request', 'CONNECT is not supported.'), 'CONNECT');
  });

  return {
    get running() {
      return running;
    },
    add(exchange) {
      const { socket } = exchange.request;
      const exchanges = bySocket.get(socket) ?? new Set();
      if ([...exchanges].some(({ closesConnection }) => closesConnection)) return false;
      bySocket.set(socket, exchanges.add(exchange));
      running++;
      exchange.response.once('close', () => {
        exchanges.delete(exchange);
        running--;
        if (running > 0) return;
        for (const resolve of waiting) resolve();
        waiting = [];
      });
      return true;
    },
    isQuiet: (socket) => (bySocket.get(socket)?.size ?? 0) === 0,
    idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
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
