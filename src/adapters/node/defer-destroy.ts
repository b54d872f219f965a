import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { streamOf } from './http.ts';

const HELD = Symbol('headgate.heldDestroy');

/**
 * Tells of a connection that is about to be broken off without an error, and, where that is to wait, does it when it is let go. What is broken in
 * itself is destroyed at once.
 * @param hear returns whether it is to wait
 * @returns lets go
 */
export function holdDestroy(response: ServerResponse, hear: () => boolean): () => void {
  const socket: Socket & { [HELD]?: boolean } = response.req.socket;
  if (streamOf(response) !== undefined || socket[HELD] === true) return () => {};
  const before = Object.getOwnPropertyDescriptor(socket, 'destroy');
  const { destroy } = socket;
  let isWanted = false;
  socket[HELD] = true;
  socket.destroy = (error) => {
    if ((error !== undefined && error !== null) || !hear()) return Reflect.apply(destroy, socket, [error]);
    isWanted = true;
    return socket;
  };
  return () => {
    socket[HELD] = false;
    if (before === undefined) Reflect.deleteProperty(socket, 'destroy');
    else Object.defineProperty(socket, 'destroy', before);
    if (isWanted) socket.destroySoon();
  };
}
