import type { SuiteServer } from '../../support/adapter-suite/subject.ts';

declare const Deno: {
  serve(
    options: object,
    handler: (request: Request) => unknown,
  ): { readonly addr: { readonly port: number }; shutdown(): Promise<void> };
};

/** Serves web requests with Deno's own server. */
export function listenWeb(fetch: (request: Request) => unknown): SuiteServer {
  const stop = new AbortController();
  const options = { port: 0, hostname: '127.0.0.1', signal: stop.signal, onListen() {} };
  const { addr } = Deno.serve(options, fetch);
  return { port: addr.port, close: () => stop.abort() };
}
