// @ts-expect-error only workerd has this module
import { env } from 'cloudflare:workers';
import type { SuiteServer } from '../../support/adapter-suite/subject.ts';
import { reportContact } from '../runner.ts';

let served: ((request: Request) => unknown) | undefined;

/**
 * Serves web requests. A worker cannot listen on a socket, so it sends itself requests through a binding. Each request
 * has its own context, as if it came over the network.
 */
export function listenWeb(fetch: (request: Request) => unknown): SuiteServer {
  served = fetch;
  reportContact('server');
  return {
    fetch(request) {
      reportContact('client');
      return env.SELF.fetch(request);
    },
    close() {
      served = undefined;
    },
  };
}

/** Passes a request that arrived to the handler of {@link listenWeb}. */
export function answer(request: Request): unknown {
  return served?.(request) ?? new Response('nothing is served', { status: 404 });
}
