import type { Duplex } from 'node:stream';
import { type Exchange, isOpen } from '../exchange/exchange.ts';

/** Most exchanges of one connection that run at a time. */
const MAX_RUNNING = 4;
/**
 * Most requests that wait behind them, on one connection and on all together. No client needs as many, and each costs
 * about 4 KB of memory, so a connection is cut.
 */
const MAX_WAITING = 256;
const MAX_WAITING_TOGETHER = 16_384;

/** The requests that wait on the connections of one server. */
export class WaitingRequests {
  readonly #connections = new Set<Connection>();
  #count = 0;

  /**
   * Counts one more waiting exchange. If there are too many, cuts the connection with the most, so that the few clients
   * that cause them pay.
   */
  add(connection: Connection): void {
    this.#connections.add(connection);
    this.#count++;
    if (this.#count <= MAX_WAITING_TOGETHER) return;
    let longest = connection;
    for (const each of this.#connections) if (each.waiting > longest.waiting) longest = each;
    longest.cut();
  }

  /** So many wait no longer. */
  remove(connection: Connection, count: number): void {
    this.#count -= count;
    if (connection.waiting === 0) this.#connections.delete(connection);
  }
}

/**
 * The exchanges of one connection. A client may send many requests before it reads the first answer. Only a few of them
 * run at a time, and the others wait: nothing is read, looked up or claimed for them before their turn.
 */
export class Connection {
  readonly #socket: Duplex;
  readonly #all: WaitingRequests;
  // Both are short. Lists, because a set is made anew every few changes, and the old one would keep exchanges that are
  // over in memory until the next collection of all of it.
  readonly #exchanges: Exchange[] = [];
  readonly #running: Exchange[] = [];
  readonly #waiting = new Map<Exchange, () => void>();
  #closesAfterLast = false;
  /** The answer to this exchange says `Connection: close`, because no request came after it. */
  #last: Exchange | undefined;

  constructor(socket: Duplex, all: WaitingRequests) {
    this.#socket = socket;
    this.#all = all;
    // Node reads on when a body is consumed or an answer was written, whether or not requests wait.
    socket.on('resume', () => {
      if (this.#waiting.size > 0) socket.pause();
    });
  }

  /** In the order of their requests. */
  get exchanges(): readonly Exchange[] {
    return [...this.#exchanges];
  }

  /** Requests that wait for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  get isQuiet(): boolean {
    return this.#exchanges.length === 0;
  }

  /** Whether a further request would get an answer: the connection does not close before. */
  get isLasting(): boolean {
    if (!this.#socket.writable) return false;
    if (this.#last?.response.headersSent && this.#exchanges.includes(this.#last)) return false;
    for (const { closesConnection } of this.#exchanges) if (closesConnection) return false;
    return true;
  }

  add(exchange: Exchange): void {
    this.#exchanges.push(exchange);
    if (this.#closesAfterLast) this.#setLast(exchange);
  }

  /**
   * From now on the answer to the last request says `Connection: close`. Until its head is written, a further request
   * can take its place.
   */
  closeAfterLast(): void {
    if (this.#closesAfterLast) return;
    this.#closesAfterLast = true;
    const last = this.exchanges.at(-1);
    if (last !== undefined) this.#setLast(last);
  }

  #setLast(exchange: Exchange): void {
    if (this.#last?.response.headersSent === false) this.#last.response.shouldKeepAlive = true;
    this.#last = undefined;
    if (exchange.response.headersSent) return;
    exchange.response.shouldKeepAlive = false;
    this.#last = exchange;
  }

  /** Calls `start` at once, or when enough earlier exchanges have closed. Never if the client is gone by then. */
  whenTurn(exchange: Exchange, start: () => void): void {
    if (this.#running.length < MAX_RUNNING) {
      this.#running.push(exchange);
      start();
    } else if (this.#waiting.size === MAX_WAITING) this.cut();
    else {
      this.#waiting.set(exchange, start);
      this.#socket.pause();
      this.#all.add(this);
    }
  }

  /** Closes the connection at once. Waiting exchanges are not started. */
  cut(): void {
    const { size } = this.#waiting;
    this.#waiting.clear();
    this.#all.remove(this, size);
    this.#socket.destroy();
  }

  /** Call it when the response is closed. */
  delete(exchange: Exchange): void {
    remove(this.#exchanges, exchange);
    remove(this.#running, exchange);
    if (this.#waiting.size === 0) return;
    this.#stopWaiting(exchange);
    if (!this.#socket.destroyed) this.#startWaiting();
  }

  #stopWaiting(exchange: Exchange): void {
    if (this.#waiting.delete(exchange)) this.#all.remove(this, 1);
  }

  #startWaiting(): void {
    for (const [exchange, start] of this.#waiting) {
      if (this.#running.length === MAX_RUNNING) return;
      this.#stopWaiting(exchange);
      this.#running.push(exchange);
      // A request whose body did not arrive in time is answered already.
      if (isOpen(exchange)) start();
    }
    this.#socket.resume();
  }
}

function remove(list: Exchange[], exchange: Exchange): void {
  const at = list.indexOf(exchange);
  if (at >= 0) list.splice(at, 1);
}
