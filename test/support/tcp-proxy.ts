import { connect, createServer, type Socket } from 'node:net';

/** A proxy in front of a server. A test can make it slow, or let it cut a connection. */
export interface TcpProxy {
  readonly port: number;
  /** Delay of everything that is sent to the server from now on, in milliseconds. */
  delayRequestsMs: number;
  /** Forwards so many bytes of the next reply, then cuts the connection; once. */
  cutAfterBytes: number | undefined;
  /** Number of replies that are forwarded before `cutAfterBytes` applies. */
  passAnswers: number;
  close(): Promise<void>;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let dueAt = 0;
  const track = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1');
    track(near);
    track(far);
    near.once('close', () => far.destroy());
    far.once('close', () => near.destroy());
    // Requests after a delayed one wait too, because a connection never changes the order of requests.
    const waiting: Buffer[] = [];
    near.on('data', (chunk) => {
      if (proxy.delayRequestsMs === 0 && waiting.length === 0) {
        far.write(chunk);
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
      if (cut === undefined) near.write(chunk);
      else near.write(chunk.subarray(0, cut), () => near.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: TcpProxy = {
    port: (server.address() as { port: number }).port,
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
