import type { SuiteServer } from '../../support/adapter-suite/subject.ts';

declare const Bun: {
  serve(options: object): { readonly port: number; stop(withConnections: boolean): Promise<void> };
};

/** Serves web requests with Bun's own server. */
export function listenWeb(fetch: (request: Request) => unknown): SuiteServer {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch,
    error: () => new Response('failed', { status: 500 }),
  });
  return { port: server.port, close: () => server.stop(true) };
}
