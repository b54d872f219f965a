import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cleanUpLater } from './clean-up.ts';
import type { Fault } from './fault.ts';

/** A proxy in front of an HTTP server that lets one request fail. */
export interface HttpFaultProxy {
  /** Origin to use in place of the server's. */
  readonly url: string;
  /** Every request since the last fault was set, as `POST /path`. */
  readonly seen: readonly string[];
  /** The next request that matches fails, once. */
  failNext(matches: (call: string) => boolean, fault: Fault): void;
  /** Whether the fault has happened. */
  readonly hasFailed: boolean;
}

/** @param upstream origin of the server behind the proxy */
export async function startHttpFaultProxy(upstream: string): Promise<HttpFaultProxy> {
  let seen: string[] = [];
  let next: { matches(call: string): boolean; fault: Fault } | undefined;
  let hasFailed = false;
  const server = createServer((incoming, answer) => {
    const call = `${incoming.method} ${new URL(incoming.url ?? '/', upstream).pathname}`;
    seen.push(call);
    const fault = next?.matches(call) ? next.fault : undefined;
    if (fault !== undefined) {
      next = undefined;
      hasFailed = true;
    }
    forward(upstream, incoming, answer, fault);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUpLater(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get seen() {
      return seen;
    },
    get hasFailed() {
      return hasFailed;
    },
    failNext: (matches, fault) => {
      seen = [];
      hasFailed = false;
      next = { matches, fault };
    },
  };
}

function forward(upstream: string, incoming: IncomingMessage, answer: ServerResponse, fault: Fault | undefined): void {
  if (fault?.phase === 'before') {
    incoming.resume();
    fail(answer, fault);
    return;
  }
  const { host: _, ...headers } = incoming.headers;
  const outgoing = request(new URL(incoming.url ?? '/', upstream), { method: incoming.method, headers });
  // A server whose client disappears sees the same as without the proxy.
  answer.on('close', () => outgoing.destroy());
  outgoing.on('error', () => answer.destroy());
  if (fault?.phase === 'in') {
    // The server gets the head and the first half of the first chunk, and never the end.
    outgoing.flushHeaders();
    incoming.once('data', (chunk: Buffer) => {
      outgoing.write(chunk.subarray(0, Math.ceil(chunk.length / 2)), () => {
        if (fault.kind !== 'stall') outgoing.destroy();
        fail(answer, fault);
      });
      incoming.resume();
    });
    // A request without a body.
    incoming.once('end', () => fail(answer, fault));
    return;
  }
  outgoing.on('response', (response) => {
    if (fault === undefined) {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
      return;
    }
    response.resume().on('end', () => fail(answer, fault));
  });
  incoming.pipe(outgoing);
}

function fail(answer: ServerResponse, { kind }: Fault): void {
  if (kind === 'cut') answer.destroy();
  else if (kind === 'wrong' && !answer.headersSent)
    answer.writeHead(502, { 'content-type': 'text/html', connection: 'close' }).end('<h1>Bad gateway</h1>');
  // A stalled client waits until its own deadline.
}
