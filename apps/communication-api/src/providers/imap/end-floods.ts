import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';

/** The most bytes that an IMAP server may send before the client sends again. */
export const MAX_IMAP_BYTES = 4 * 1024 * 1024;
/** The same in lines, since a short line takes as much time as a long one: 10,000 folders, with the status of each. */
export const MAX_IMAP_LINES = 20_000;
/** The same for SMTP: answers to 500 recipients of one email, at their greatest length. */
export const MAX_SMTP_BYTES = 256 * 1024;
const LOOK_MS = 100;
const LF = 10;

/**
 * Ends a connection whose server does not stop talking. The libraries bound a line and an answer, but not how many
 * lines and answers there are. They would hold the memory and the time of the process until a deadline.
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

/**
 * Ends a connection whose server sends too many lines before the client sends again.
 * @param socket the connection
 * @param reader gets the server's lines, without TLS
 */
export function endManyLines(socket: Socket, reader: Writable, maxLines: number): void {
  let { bytesWritten } = socket;
  let lines = 0;
  const write = reader.write.bind(reader) as (chunk: Buffer) => boolean;
  reader.write = (chunk: Buffer) => {
    if (socket.bytesWritten !== bytesWritten) [bytesWritten, lines] = [socket.bytesWritten, 0];
    for (let at = chunk.indexOf(LF); at >= 0 && lines <= maxLines; at = chunk.indexOf(LF, at + 1)) lines++;
    if (lines <= maxLines) return write(chunk);
    socket.destroy(new Error(`The mail server sends more than ${maxLines} lines at once.`));
    // Data that is still on its way is dropped, so that the end of the connection is seen.
    return true;
  };
}
