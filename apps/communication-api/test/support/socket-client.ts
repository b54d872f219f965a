import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** One connection, on which a test writes bytes as it likes. */
export interface RawConnection {
  readonly socket: Socket;
  /** Everything that was received. */
  readonly received: () => string;
  readonly isClosed: () => boolean;
  /** Writes, and waits until the system took the bytes. Returns false if the connection is closed. */
  write(bytes: string | Uint8Array): Promise<boolean>;
  /** Waits until `count` answers begin to arrive. */
  answers(count: number): Promise<readonly number[]>;
}

const WAIT_MS = 15_000;

export async function openConnection(url: string): Promise<RawConnection> {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.setMaxListeners(0);
  let text = '';
  let closed = false;
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  const statuses = (): number[] => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  return {
    socket,
    received: () => text,
    isClosed: () => closed,
    write: (bytes) =>
      new Promise((resolve) => {
        if (closed) return resolve(false);
        socket.once('close', () => resolve(false));
        socket.write(bytes, (error) => resolve(error === undefined || error === null));
      }),
    answers: async (count) => {
      for (const end = Date.now() + WAIT_MS; statuses().length < count && !closed && Date.now() < end; ) await pause(5);
      return statuses();
    },
  };
}

/** The head of a request to send, without the empty line at its end. */
export const head = (token: string, ...fields: readonly string[]): string =>
  ['POST /api/v1/emails HTTP/1.1', 'host: x', `x-api-key: ${token}`, ...fields].map((line) => `${line}\r\n`).join('');
