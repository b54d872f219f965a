import { createServer, type Socket } from 'node:net';
import { afterFile } from './after-file.ts';

/** The reply of a fake server to a command, in the bytes of the protocol. Undefined means the usual reply. */
export type Says = (command: readonly string[]) => string | undefined;

export const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

const HANDSHAKE = '# Server\r\nredis_version:7.4.0\r\nloading:0\r\n';

/**
 * Starts a server that implements only the Redis handshake, and otherwise sends the replies of the test. Returns its
 * port.
 */
export async function startFakeRedis(says: Says): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let received = '';
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      for (;;) {
        const parsed = takeCommand(received);
        if (parsed === undefined) return;
        received = received.slice(parsed.length);
        socket.write(says(parsed.command) ?? usual(parsed.command));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterFile(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as { port: number }).port;
}

function usual([name = '']: readonly string[]): string {
  if (name === 'ping') return '+PONG\r\n';
  if (name === 'info') return bulk(HANDSHAKE);
  return '+OK\r\n';
}

function takeCommand(text: string): { command: string[]; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return undefined;
  let at = head[0].length;
  const command: string[] = [];
  for (let i = 0; i < Number(head[1]); i += 1) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at));
    if (size === null) return undefined;
    const start = at + size[0].length;
    const end = start + Number(size[1]);
    if (text.length < end + 2) return undefined;
    command.push(i === 0 ? text.slice(start, end).toLowerCase() : text.slice(start, end));
    at = end + 2;
  }
  return { command, length: at };
}
