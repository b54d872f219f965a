import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { streamOf } from './http.ts';

/** What is to be done when a connection closes. One listener per connection, because a client can send many requests. */
const endsOf = /* @__PURE__ */ new WeakMap<Socket, Set<() => void>>();

/**
 * Calls `end` if the connection closes while the response waits behind another one (pipelining in HTTP/1.1): Node emits no
 * `close` for it then. It can be called more than once.
 */
export function endWithConnection(response: ServerResponse, end: () => void): void {
  const socket: Socket | undefined = response.req?.socket;
  if (response.socket !== null || streamOf(response) !== undefined || typeof socket?.once !== 'function') return;
  if (socket.destroyed) {
    end();
    return;
  }
  let ends = endsOf.get(socket);
  if (ends === undefined) {
    const all = new Set<() => void>();
    socket.once('close', () => {
      for (const each of all) each();
    });
    endsOf.set(socket, all);
    ends = all;
  }
  const ofConnection = ends;
  ofConnection.add(end);
  response.once('finish', () => ofConnection.delete(end));
}
