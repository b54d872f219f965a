import { getRequestListener } from '@hono/node-server';
import { type Listening, listen } from './listen.ts';

/** A handler of web requests, behind a real socket of Node's. Other runtimes have servers of their own: see `test/runtimes/servers`. */
export function listenWeb(fetch: (request: Request) => unknown): Promise<Listening> {
  return listen(getRequestListener(fetch));
}
