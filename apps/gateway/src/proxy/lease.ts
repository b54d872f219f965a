import type { Socket } from 'node:net';

/** Who needs a connection. */
export interface Applicant {
  readonly application: string;
  /** Whether it must not get a connection that the upstream may be closing. */
  readonly needsFresh: boolean;
}

/** A request that uses a connection. */
export interface ConnectionUser {
  /** Gets a connection, to which nothing was written. */
  onConnection(socket: Socket): void;
  onData(chunk: Buffer): void;
  /** More can be written. */
  onDrain(): void;
  /** The upstream sends nothing more. */
  onUpstreamEnd(): void;
  /** The connection is closed, or the request will never get one. */
  onClosed(error: Error | undefined): void;
}

/** A connection of the pool. */
export interface Connection {
  readonly socket: Socket;
  /** Undefined while the connection is idle. */
  lease: Lease | undefined;
  idleSince: number;
  /** On the monotonic timer, in milliseconds. From then on the connection is not used again. */
  idleUntil: number;
}

/** A lease's calls to its pool. */
export interface Lender {
  request(lease: Lease): void;
  cancel(lease: Lease): void;
  release(connection: Connection, hintMs: number | undefined): void;
}

/** One request's right to a connection, from the wait for it to its end. */
export class Lease {
  /** Set while the connection belongs to this lease. */
  connection: Connection | undefined;
  /** The pool gave the request a connection. */
  isGiven = false;
  isCancelled = false;

  constructor(
    private readonly lender: Lender,
    readonly application: string,
    readonly needsFresh: boolean,
    readonly user: ConnectionUser,
  ) {}

  /** Whether no connection has been found or begun for it. */
  get isWaiting(): boolean {
    return this.connection === undefined && !this.isGiven;
  }

  /** Gives its user a connection, perhaps at once. Call it once. */
  request(): void {
    this.lender.request(this);
  }

  /** Waits no longer; a connection that belongs to the lease is closed. Later calls do nothing. */
  cancel(): void {
    this.lender.cancel(this);
  }

  /**
   * The request is over. The connection is used again if it is still open.
   * @param hintMs when the upstream closes an idle connection, in milliseconds, if it said so
   */
  release(hintMs: number | undefined): void {
    if (this.connection !== undefined) this.lender.release(this.connection, hintMs);
  }
}
