import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { ImapFlow } from 'imapflow';
import { expect, test } from 'vitest';
import { append } from '../../../src/providers/imap/append.ts';
import { cleanUpLater } from '../../support/clean-up.ts';

const CHUNK = Buffer.alloc(65_536, 'bytes of a file ');
const SIZE = 1_024 * CHUNK.length;
/** Far more than the system and the streams hold. */
const MOST_AHEAD = SIZE / 2;
const PAUSE_MS = 200;

/** What a server has got of the message; it reads nothing of it at first. */
interface Received {
  bytes: number;
  end: string;
}

async function startSlowServer(): Promise<{ readonly port: number; readonly received: Received }> {
  const received: Received = { bytes: 0, end: '' };
  const server = createServer((socket) => {
    cleanUpLater(() => socket.destroy());
    socket.on('error', () => {}).write('* PREAUTH [CAPABILITY IMAP4rev1] Ready\r\n');
    talk(socket, received);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(() => void server.close());
  return { port: (server.address() as AddressInfo).port, received };
}

function talk(socket: Socket, received: Received): void {
  let tag: string | undefined;
  socket.on('data', (data) => {
    if (tag === undefined) {
      const [line = ''] = data.toString('latin1').split('\r\n');
      const [first = ''] = line.split(' ');
      if (!line.endsWith('}')) {
        socket.write(`${first} OK Done\r\n`);
        return;
      }
      tag = first;
      socket.write('+ Go on\r\n');
      socket.pause();
      setTimeout(() => socket.resume(), PAUSE_MS);
      return;
    }
    received.bytes += data.length;
    received.end = data.subarray(-2).toString('latin1');
    if (received.bytes < SIZE + 2) return;
    socket.write(`${tag} OK Done\r\n`);
    tag = undefined;
  });
}

test('a message is read as fast as the server takes it', async () => {
  const { port, received } = await startSlowServer();
  const client = new ImapFlow({
    ...{ host: '127.0.0.1', port, secure: false, doSTARTTLS: false, auth: { user: 'ann', pass: 'x' } },
    ...{ logger: false, disableAutoIdle: true },
  });
  await client.connect();
  cleanUpLater(() => client.close());
  let [read, most] = [0, 0];
  function* message(): Generator<Buffer> {
    for (; read < SIZE; read += CHUNK.length) {
      most = Math.max(most, read - received.bytes);
      yield CHUNK;
    }
  }
  await append(client, 'Sent', { size: SIZE, open: () => Readable.from(message()) }, new Date());
  expect(received).toEqual({ bytes: SIZE + 2, end: '\r\n' });
  expect(most).toBeLessThan(MOST_AHEAD);
  await client.noop();
});
