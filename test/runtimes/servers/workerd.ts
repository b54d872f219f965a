// @ts-expect-error only workerd has it
import { env } from 'cloudflare:workers';
import type { SuiteServer } from '../../../src/testing/index.ts';
import { askedOf } from '../runner.ts';

let served: ((request: Request) => unknown) | undefined;

/** A worker has no socket to listen on: its requests come back in by a binding to itself, each in a context of its own, as over the network. */
export function listenWeb(fetch: (request: Request) => unknown): SuiteServer {
  served = fetch;
  askedOf('server');
  return {
    fetch(request) {
      askedOf('client');
      return env.SELF.fetch(request);
    },
    close() {
      served = undefined;
    },
  };
}

/** What {@link listenWeb} was given answers a request that came in. */
export function answer(request: Request): unknown {
  return served?.(request) ?? new Response('nothing is served', { status: 404 });
}
