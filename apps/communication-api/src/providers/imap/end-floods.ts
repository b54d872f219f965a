import type { Socket } from 'node:net';

/** What a server may say before the client says something again. A list of 50,000 folders is shorter. */
const MAX_BYTES = 8 * 1024 * 1024;
const LOOK_MS = 100;

/**
 * Ends a connection whose server does not stop talking. The libraries bound a line and an answer, but not how many lines
 * and answers there are. They would hold the memory and the time of the process until a deadline.
 */
export function endFloods(socket: Socket, maxBytes = MAX_BYTES): void {
  let { bytesWritten, bytesRead } = socket;
  const timer = setInterval(() => {
    if (socket.bytesWritten !== bytesWritten) ({ bytesWritten, bytesRead } = socket);
    else if (socket.bytesRead - bytesRead > maxBytes) socket.destroy(new Error('The mail server sends without end.'));
  }, LOOK_MS).unref();
  socket.once('close', () => clearInterval(timer));
}
