import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { problemReply } from '../../http/problem.ts';
import { refuseExchange } from '../exchange/answers.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';

/** Knows which exchanges run on which connection, and answers what never became a request. */
export interface Connections {
  /** Exchanges that run now. */
  readonly running: number;
  /** Returns false for one that comes behind the last answer of its connection: nobody will see what it is answered. */
  add(exchange: Exchange): boolean;
  /** Whether nothing runs on this connection. */
  isQuiet(socket: Duplex): boolean;
  /** Resolves when nothing runs. */
  idle(): Promise<void>;
}

/** Options of {@link watchConnections}. */
export interface ConnectionsOptions {
  readonly newId: () => string;
  /** Hears of an answer to something that was no request. */
  readonly onMalformed: (id: string, status: number, reason: string) => void;
}

/** Answers malformed HTTP with the error object, in its turn behind the answers that the connection still owes, and then closes it. */
export function watchConnections(server: Server, { newId, onMalformed }: ConnectionsOptions): Connections {
  const bySocket = new WeakMap<Duplex, Set<Exchange>>();
  const broken = new WeakSet<Duplex>();
  let running = 0;
  let waiting: (() => void)[] = [];

  const answerRaw = (socket: Duplex, refusal: Refusal, reason: string): void => {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    const id = newId();
    onMalformed(id, refusal.status, reason);
    socket.end(rawReply(id, refusal), () => socket.destroy());
  };

  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (broken.has(socket)) return;
    broken.add(socket);
    const refusal = refusalOf(error);
    const reason = error.code ?? 'unknown';
    const exchanges = bySocket.get(socket) ?? new Set();
    const incomplete = [...exchanges].find(({ request }) => !request.complete);
    if (!socket.writable) socket.destroy();
    else if (incomplete?.answered) incomplete.request.socket.destroySoon();
    else if (incomplete !== undefined) refuseExchange(incomplete, refusal, { cut: true });
    else if (exchanges.size === 0) answerRaw(socket, refusal, reason);
    else
      for (const last of [...exchanges].slice(-1))
        last.response.once('close', () => answerRaw(socket, refusal, reason));
  });
  server.on('connection', (socket) => {
    socket.once('close', () => {
      // Node tells only the answer whose turn it is that the connection has gone; those that wait behind it are told here.
      for (const { response } of [...(bySocket.get(socket) ?? [])]) {
        if (response.socket !== null) continue;
        response.destroy();
        response.emit('close');
      }
    });
  });
  server.on('connect', (_request, socket) => {
    socket.on('error', () => {});
    const answer = (): void =>
      answerRaw(socket, refuse(400, 'errors/malformed_request', 'The gateway is no tunnel.'), 'CONNECT');
    const last = [...(bySocket.get(socket) ?? [])].at(-1);
    if (last === undefined) answer();
    else last.response.once('close', answer);
  });

  return {
    get running() {
      return running;
    },
    add(exchange) {
      const { socket } = exchange.request;
      const exchanges = bySocket.get(socket) ?? new Set();
      if ([...exchanges].some(({ last }) => last)) return false;
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

function refusalOf({ code }: NodeJS.ErrnoException): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return refuse(431, 'errors/headers_too_large', 'The head of the request is larger than 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return refuse(408, 'errors/request_timeout', 'The request did not come in time.');
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
