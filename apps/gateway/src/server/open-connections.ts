import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { whenSecure } from './when-secure.ts';

/** Options of {@link OpenConnections}. */
export interface OpenConnectionsOptions {
  /** Most connections at a time. One more takes the place of the connection that has been idle for the longest time. */
  readonly maxConnections: number;
  readonly onClose?: (socket: Socket) => void;
  /** Called at the end of the last request of a connection, and of its TLS handshake. */
  readonly onIdle?: (socket: Socket) => void;
}

/** The open connections of a server. Clients that open connections without a request cannot shut out other clients. */
export class OpenConnections {
  readonly #all = new Set<Socket>();
  /** Connections without a request, in the order in which they became idle. */
  readonly #idle = new Set<Socket>();
  /** Requests that run on each connection, or wait for their turn. */
  readonly #requests = new WeakMap<Duplex, number>();
  readonly #onIdle: (socket: Socket) => void;

  constructor(server: Server, { maxConnections, onClose = () => {}, onIdle = () => {} }: OpenConnectionsOptions) {
    this.#onIdle = onIdle;
    const close = (socket: Socket): void => {
      this.#all.delete(socket);
      this.#idle.delete(socket);
      onClose(socket);
    };
    server.on('connection', (socket) => {
      this.#all.add(socket);
      this.#idle.add(socket);
      if (this.#all.size > maxConnections) {
        // This connection itself if no other is idle.
        const [longestIdle] = this.#idle;
        if (longestIdle !== undefined) this.#idle.delete(longestIdle);
        longestIdle?.destroy();
      }
      socket.once('close', () => close(socket));
    });
    // With TLS a connection is first the client's TCP socket, and from the end of the handshake on a TLS socket.
    whenSecure(server, (tcpSocket, socket) => {
      if (this.#all.delete(tcpSocket)) this.#all.add(socket);
      if (this.#idle.delete(tcpSocket)) this.#idle.add(socket);
      onIdle(socket);
      socket.once('close', () => close(socket));
    });
  }

  get all(): ReadonlySet<Socket> {
    return this.#all;
  }

  get idle(): ReadonlySet<Socket> {
    return this.#idle;
  }

  /** A request begins on a connection. */
  begin(socket: Socket): void {
    this.#requests.set(socket, (this.#requests.get(socket) ?? 0) + 1);
    this.#idle.delete(socket);
  }

  /** A request ends on a connection. */
  end(socket: Socket): void {
    const left = (this.#requests.get(socket) ?? 0) - 1;
    this.#requests.set(socket, left);
    if (left > 0 || socket.destroyed) return;
    this.#idle.add(socket);
    this.#onIdle(socket);
  }
}
