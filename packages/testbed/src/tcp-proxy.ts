import { connect, createServer, type Socket } from 'node:net';

/** A proxy in front of a server. A test can make it slow, or let it cut a connection. */
export interface TcpProxy {
  readonly port: number;
  /** Port of the server for connections from now on. */
  target: number;
  /** Bytes per second that all connections together can carry in each direction. */
  bytesPerSecond: number;
  /** Delay of everything that is sent to the server from now on, in milliseconds. */
  delayRequestsMs: number;
  /** Forwards so many bytes of the next reply, then cuts the connection; once. */
  cutAfterBytes: number | undefined;
  /** Number of replies that are forwarded before `cutAfterBytes` applies. */
  passAnswers: number;
  close(): Promise<void>;
}

/** Most bytes that wait in a limited link, as in the buffer of a router. */
const LINK_BUFFER = 262_144;

/** One direction of a link whose speed is limited: each chunk waits behind all earlier chunks. */
class Link {
  #freeAt = 0;
  /** Timers of almost the same time can fire in any order; the chunks stay in theirs. */
  readonly #waiting: (() => void)[] = [];

  constructor(private readonly bytesPerSecond: () => number) {}

  /** Writes the chunk when it crossed the link. Reads no more from the source while the buffer is full. */
  carry(chunk: Buffer, from: Socket, write: (chunk: Buffer) => void): void {
    const rate = this.bytesPerSecond() / 1_000;
    if (rate === Number.POSITIVE_INFINITY && this.#waiting.length === 0) {
      write(chunk);
      return;
    }
    const now = performance.now();
    this.#freeAt = Math.max(now, this.#freeAt) + chunk.length / rate;
    const waitMs = this.#freeAt - now;
    this.#waiting.push(() => write(chunk));
    setTimeout(() => this.#waiting.shift()?.(), waitMs);
    if (waitMs * rate <= LINK_BUFFER) return;
    from.pause();
    setTimeout(() => from.resume(), waitMs - LINK_BUFFER / rate);
  }
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const up = new Link(() => proxy.bytesPerSecond);
  const down = new Link(() => proxy.bytesPerSecond);
  let dueAt = 0;
  const track = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    const far = connect(proxy.target, '127.0.0.1');
    track(near);
    track(far);
    near.once('close', () => far.destroy());
    far.once('close', () => near.destroy());
    // Requests after a delayed one wait too, because a connection never changes the order of requests.
    const waiting: Buffer[] = [];
    near.on('data', (chunk) => {
      if (proxy.delayRequestsMs === 0 && waiting.length === 0) {
        up.carry(chunk, near, (each) => far.write(each));
        return;
      }
      waiting.push(chunk);
      setTimeout(
        () => far.write(waiting.shift() as Buffer),
        Math.max(proxy.delayRequestsMs, dueAt - performance.now()),
      );
      dueAt = Math.max(dueAt, performance.now() + proxy.delayRequestsMs);
    });
    far.on('data', (chunk) => {
      if (proxy.cutAfterBytes !== undefined && proxy.passAnswers > 0) {
        proxy.passAnswers -= 1;
        near.write(chunk);
        return;
      }
      const cut = proxy.cutAfterBytes;
      proxy.cutAfterBytes = undefined;
      if (cut === undefined) down.carry(chunk, far, (each) => near.write(each));
      else near.write(chunk.subarray(0, cut), () => near.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: TcpProxy = {
    port: (server.address() as { port: number }).port,
    target,
    bytesPerSecond: Number.POSITIVE_INFINITY,
    delayRequestsMs: 0,
    cutAfterBytes: undefined,
    passAnswers: 0,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
