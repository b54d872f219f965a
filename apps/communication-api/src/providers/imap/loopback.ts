import { type AddressInfo, createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream';

/**
 * A port of 127.0.0.1 that leads to a socket, for a library that only makes its connections itself. It accepts one
 * connection. If another process of this machine is faster, that process gets a connection that it could have made
 * itself, and the library gets none.
 */
export async function loopbackTo(far: Socket): Promise<number> {
  const server = createServer((near) => {
    server.close();
    const end = (): void => {
      near.destroy();
      far.destroy();
    };
    pipeline(near, far, end);
    pipeline(far, near, end);
  });
  far.once('close', () => server.close());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', 1, resolve);
  });
  return (server.address() as AddressInfo).port;
}
