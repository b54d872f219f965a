import type { Socket } from 'node:net';
import { FairQueue } from 'headgate/internal';
import { Tally } from '../base/tally.ts';
import type { Connect } from './connect.ts';
import { type Applicant, type Connection, type ConnectionUser, Lease, type Lender } from './lease.ts';

/**
 * A request with an idempotency key gets a new connection, or one that was used this recently, in milliseconds. If the
 * upstream closes a connection while a request is on its way, it is unknown whether the request was received, and the
 * failure is stored under the key. Servers close a connection that is idle for seconds, some proxies after some hundred
 * milliseconds.
 */
const FRESH_MS = 100;
/** A connection is closed this long before the upstream would close it, in milliseconds. */
const MARGIN_MS = 1_000;
/** How often idle connections are looked at, in milliseconds. */
const SWEEP_MS = 1_000;
/** How many requests of an application may wait per connection that it may use. */
const WAITING_PER_CONNECTION = 8;

/** Options of {@link ConnectionPool}. */
export interface ConnectionPoolOptions {
  readonly connect: Connect;
  /** Most connections that are open. */
  readonly maxConnections: number;
  /** Most connections that one application uses at a time. */
  readonly maxPerApplication: number;
  /** How long a connection stays open without a request, in milliseconds. */
  readonly idleMs: number;
  /** Called each time the last connection closes. */
  readonly onEmpty?: () => void;
}

/** No connection is free for the request, and too many requests of its application wait for one already. */
export class PoolFullError extends Error {}

/** The gateway closed its connections itself. */
export class PoolClosedError extends Error {}

/**
 * Connections to the upstream, one request at a time on each. Their number is bounded, also per application. If none
 * is free, requests wait, and applications take turns.
 */
export class ConnectionPool implements Lender {
  readonly #options: ConnectionPoolOptions;
  readonly #open = new Set<Connection>();
  /** The connection that was used last is at the end. */
  readonly #idle: Connection[] = [];
  /** Leases per application. */
  readonly #leases = new Tally();
  readonly #waiting = new FairQueue<Lease>();
  #keepsIdle = true;
  #sweeper: NodeJS.Timeout | undefined;
  #closed: (() => void) | undefined;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
  }

  /** Connections that a request uses or will use. */
  get inUse(): number {
    return this.#leases.total;
  }

  /** Requests that wait for a connection. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** A lease that does nothing before its `request` is called. */
  createLease({ application, needsFresh }: Applicant, user: ConnectionUser): Lease {
    return new Lease(this, application, needsFresh, user);
  }

  /** Whether connections stay open without a request. If not, idle ones are closed, and a new request gets a new one. */
  keepIdle(keepsIdle: boolean): void {
    this.#keepsIdle = keepsIdle;
    if (!keepsIdle) for (const { socket } of this.#idle) socket.destroy();
    if (this.#open.size === 0) this.#options.onEmpty?.();
  }

  /** Closes every connection at once. Resolves when all of them are closed, and their requests know it. */
  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    const closed = new Promise<void>((resolve) => {
      this.#closed = resolve;
    });
    for (const lease of this.#waiting.clear()) lease.user.onClosed(new PoolClosedError('the pool was closed'));
    for (const { socket } of this.#open) socket.destroy(new PoolClosedError('the pool was closed'));
    if (this.#open.size === 0) this.#closed?.();
    await closed;
    // An error is reported to its request a moment after its connection closed.
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** @internal For {@link Lease}. */
  request(lease: Lease): void {
    const { application, user } = lease;
    const maxWaiting = this.#options.maxPerApplication * WAITING_PER_CONNECTION;
    if (this.#closed !== undefined) user.onClosed(new PoolClosedError('the pool is closed'));
    else if (this.#mayServe(application)) this.#serve(lease);
    else if (this.#waiting.lengthOf(application) < maxWaiting) this.#waiting.push(application, lease);
    else user.onClosed(new PoolFullError('too many requests wait for a connection'));
  }

  /** @internal For {@link Lease}. */
  cancel(lease: Lease): void {
    lease.isCancelled = true;
    this.#waiting.delete(lease.application, lease);
    lease.connection?.socket.destroy();
  }

  /** @internal For {@link Lease}. */
  release(connection: Connection, hintMs: number | undefined): void {
    const { socket } = connection;
    const now = performance.now();
    connection.idleSince = now;
    connection.idleUntil = now + Math.min(this.#options.idleMs, (hintMs ?? Number.POSITIVE_INFINITY) - MARGIN_MS);
    const isKept = this.#keepsIdle && this.#closed === undefined;
    if (!isKept || connection.idleUntil <= now || !isUsable(socket)) {
      socket.destroy();
      return;
    }
    this.#idle.push(connection);
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    this.#endLease(connection);
  }

  #mayServe(application: string): boolean {
    return this.inUse < this.#options.maxConnections && this.#leases.of(application) < this.#options.maxPerApplication;
  }

  #serve(lease: Lease): void {
    this.#leases.add(lease.application, 1);
    const connection = this.#takeIdle(lease);
    if (connection === undefined) this.#connect(lease);
    else if (!lease.needsFresh) this.#give(connection, lease);
    else afterPoll(() => this.#giveIfOpen(connection, lease));
  }

  /** The connection that was used last, if it is recent enough. It belongs to the lease from now on. */
  #takeIdle(lease: Lease): Connection | undefined {
    const now = performance.now();
    for (;;) {
      const connection = this.#idle.at(-1);
      if (connection === undefined) return undefined;
      if (lease.needsFresh && now - connection.idleSince >= FRESH_MS) return undefined;
      this.#idle.pop();
      if (now < connection.idleUntil && isUsable(connection.socket)) {
        connection.lease = lease;
        lease.connection = connection;
        return connection;
      }
      connection.socket.destroy();
    }
  }

  /** Opens a connection for the lease; an idle one makes room for it. */
  #connect(lease: Lease): void {
    if (this.#open.size >= this.#options.maxConnections) this.#idle.shift()?.socket.destroy();
    const socket = this.#options.connect(() => this.#give(connection, lease));
    const connection: Connection = { socket, lease, idleSince: 0, idleUntil: 0 };
    lease.connection = connection;
    this.#open.add(connection);
    let reason: Error | undefined;
    socket.on('error', (error) => {
      reason = error;
    });
    socket.on('data', (chunk: Buffer) => {
      const { lease: current } = connection;
      if (current?.isGiven) current.user.onData(chunk);
      // Between two requests an upstream must send nothing. The next request would take it for its response.
      else socket.destroy();
    });
    socket.on('drain', () => connection.lease?.user.onDrain());
    socket.on('end', () => {
      const { lease: current } = connection;
      if (current?.isGiven) current.user.onUpstreamEnd();
    });
    socket.once('close', () => this.#onClose(connection, reason));
  }

  /** Closes the connection if it cannot be used any more; the lease then gets another connection. */
  #giveIfOpen(connection: Connection, lease: Lease): void {
    if (connection.lease !== lease) return;
    if (isUsable(connection.socket)) this.#give(connection, lease);
    else connection.socket.destroy();
  }

  #give(connection: Connection, lease: Lease): void {
    lease.isGiven = true;
    lease.user.onConnection(connection.socket);
  }

  #onClose(connection: Connection, reason: Error | undefined): void {
    this.#open.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    const { lease } = connection;
    const isReplaceable = connection.idleSince > 0 && this.#closed === undefined;
    if (lease === undefined || lease.isGiven || lease.isCancelled) {
      this.#endLease(connection);
      if (lease?.isGiven) lease.user.onClosed(reason);
    }
    // The request did not get this connection of earlier requests yet, so it gets a new one.
    else if (isReplaceable) {
      connection.lease = undefined;
      this.#connect(lease);
    } else {
      this.#endLease(connection);
      lease.user.onClosed(reason);
    }
    if (this.#open.size > 0) return;
    this.#closed?.();
    this.#options.onEmpty?.();
  }

  /** The application may use another connection instead, and so may one that waits. */
  #endLease(connection: Connection): void {
    const { lease } = connection;
    if (lease === undefined) return;
    connection.lease = undefined;
    lease.connection = undefined;
    this.#leases.add(lease.application, -1);
    this.#serveNext();
  }

  #serveNext(): void {
    if (this.#closed !== undefined || this.inUse >= this.#options.maxConnections) return;
    const lease = this.#waiting.next((application) => this.#mayServe(application));
    if (lease !== undefined) this.#serve(lease);
  }

  #sweep(): void {
    const now = performance.now();
    for (const { socket, idleUntil } of this.#idle) if (idleUntil <= now) socket.destroy();
    if (this.#idle.length > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

function isUsable(socket: Socket): boolean {
  return !socket.destroyed && socket.readable && socket.writable;
}

/**
 * Calls `next` after a whole turn of the event loop. A connection then knows of its end, if the end arrived before this
 * function was called.
 */
function afterPoll(next: () => void): void {
  setImmediate(() => setImmediate(next));
}
