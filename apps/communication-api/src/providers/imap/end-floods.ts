import type { Socket } from 'node:net';

/** What an IMAP server may say before the client says something again, in bytes: a list of 40,000 folders. */
export const MAX_IMAP_BYTES = 4 * 1024 * 1024;
/** The same for SMTP: answers to 500 recipients of one email, at their greatest length. */
export const MAX_SMTP_BYTES = 256 * 1024;
const LOOK_MS = 100;

/**
 * Ends a connection whose server does not stop talking. The libraries bound a line and an answer, but not how many lines
 * and answers there are. They would hold the memory and the time of the process until a deadline.
 */
export function endFloods(socket: Socket, maxBytes: number): void {
  let { bytesWritten, bytesRead } = socket;
  const look = (): void => {
    if (socket.bytesWritten !== bytesWritten) ({ bytesWritten, bytesRead } = socket);
    else if (socket.bytesRead - bytesRead > maxBytes) socket.destroy(new Error('The mail server sends without end.'));
  };
  const push = socket.push.bind(socket);
  socket.push = (...values) => {
    look();
    return socket.destroyed ? false : push(...values);
  };
  // TLS that begins later reads past the socket.
  const timer = setInterval(() => (socket.destroyed ? clearInterval(timer) : look()), LOOK_MS).unref();
}
