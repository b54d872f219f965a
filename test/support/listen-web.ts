import { getRequestListener } from '@hono/node-server';
import { type Listening, listen } from 'headgate-testbed/listen';

/** Serves web requests on a real Node server. Other runtimes have their own servers, in `test/runtimes/servers`. */
export function listenWeb(fetch: (request: Request) => unknown): Promise<Listening> {
  return listen(getRequestListener(fetch));
}
