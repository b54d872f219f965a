import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { streamOf } from './node-http.ts';

const HELD = Symbol('headgate.heldDestroy');

/**
 * While an answer that its handler ended waits to be kept, whoever breaks the connection off does so behind it: finalhandler, of Express and
 * Connect, does it for an error that comes when the answer is out, which without us it would be. What is broken in itself is destroyed at once.
 * @returns lets go
 */
export function holdDestroy(response: ServerResponse): () => void {
  const socket: Socket & { [HELD]?: boolean } = response.req.socket;
  if (streamOf(response) !== undefined || socket[HELD] === true) return () => {};
  const before = Object.getOwnPropertyDescriptor(socket, 'destroy');
  const { destroy } = socket;
  let isWanted = false;
  socket[HELD] = true;
  socket.destroy = (error) => {
    if (error !== undefined && error !== null) return Reflect.apply(destroy, socket, [error]);
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
