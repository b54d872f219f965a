import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** How long a connection may be silent. */
export interface SilenceLimits {
  /** Longest time in which a client reads nothing of an answer, in milliseconds. */
  readonly clientTimeoutMs: number;
  /** Longest silence in both directions while a request runs, in milliseconds. */
  readonly silenceMs: number;
}

/**
 * Closes connections on which nothing happens. If the client does not read an answer, the answer takes up memory, so
 * the time is short. Until the upstream answers, it is longer.
 * @param isQuiet whether no request runs on a connection
 * @returns sets other limits. They apply to a connection from its next request on, at the latest after its next silence
 */
export function closeSilentConnections(
  server: Server,
  limits: SilenceLimits,
  isQuiet: (socket: Socket) => boolean,
): (limits: SilenceLimits) => void {
  let silenceMs = 0;
  const set = (next: SilenceLimits): void => {
    silenceMs = next.silenceMs;
    server.timeout = Math.min(next.clientTimeoutMs, silenceMs);
  };
  set(limits);
  const silences = new WeakMap<Socket, { readonly bytes: number; readonly since: number }>();
  const silentMs = (socket: Socket): number => {
    const now = performance.now();
    const bytes = socket.bytesRead + socket.bytesWritten;
    const known = silences.get(socket);
    if (known?.bytes === bytes) return now - known.since;
    const lastMs = socket.timeout ?? 0;
    silences.set(socket, { bytes, since: now - lastMs });
    return lastMs;
  };
  // Node's timer starts again with each piece that arrives or that the client's system takes. It does not start again
  // by itself after this event.
  server.on('timeout', (socket) => {
    const waitsForUpstream = !isQuiet(socket) && socket.writableLength === 0;
    if (waitsForUpstream && silentMs(socket) < silenceMs) socket.setTimeout(server.timeout);
    else socket.destroy();
  });
  return set;
}
