import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cleanUpLater } from './clean-up.ts';
import type { Fault } from './fault.ts';

/** A request, as a test chooses it. */
export type Matches = (call: {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
}) => boolean;

/** A proxy in front of an HTTP server that lets requests fail. */
export interface HttpFaultProxy {
  /** Origin to use in place of the server's. */
  readonly url: string;
  /** The next request that matches fails, once. @returns whether it failed */
  failNext(matches: Matches, fault: Fault): () => boolean;
}

/** @param upstream origin of the server behind the proxy. Where its JSON names it, the proxy is named instead */
export async function startHttpFaultProxy(upstream: string): Promise<HttpFaultProxy> {
  const waiting = new Map<Matches, Fault>();
  const take = ({ method = '', url = '', headers }: IncomingMessage): Fault | undefined => {
    const call = { method, path: new URL(url, upstream).pathname, headers };
    const found = [...waiting].find(([matches]) => matches(call));
    if (found !== undefined) waiting.delete(found[0]);
    return found?.[1];
  };
  const server = createServer((incoming, answer) => forward(upstream, incoming, answer, take(incoming)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    failNext: (matches, fault) => {
      waiting.set(matches, fault);
      return () => !waiting.has(matches);
    },
  };
}

function forward(upstream: string, incoming: IncomingMessage, answer: ServerResponse, fault: Fault | undefined): void {
  if (fault?.phase === 'before') {
    incoming.resume();
    fail(answer, fault);
    return;
  }
  const { host, ...headers } = incoming.headers;
  const outgoing = request(new URL(incoming.url ?? '/', upstream), { method: incoming.method, headers });
  // A server whose client disappears sees the same as without the proxy.
  answer.on('close', () => outgoing.destroy());
  outgoing.on('error', () => answer.destroy());
  if (fault?.phase === 'in') {
    // The server gets the head and half of the first chunk, and never the end.
    outgoing.flushHeaders();
    const broken = (): void => {
      if (fault.kind !== 'stall')
        outgoing
          .removeAllListeners('error')
          .on('error', () => undefined)
          .destroy();
      fail(answer, fault);
    };
    incoming.once('data', (chunk: Buffer) => {
      incoming.off('end', broken);
      outgoing.write(chunk.subarray(0, Math.ceil(chunk.length / 2)), broken);
    });
    // A request without a body.
    incoming.once('end', broken).resume();
    return;
  }
  outgoing.on('response', async (response) => {
    const chunks = await response.toArray().catch(() => undefined);
    if (chunks === undefined) answer.destroy();
    else if (fault !== undefined) fail(answer, fault);
    else {
      const { 'content-length': _, 'transfer-encoding': __, ...rest } = response.headers;
      const body = Buffer.concat(chunks as Buffer[]);
      const isJson = rest['content-type']?.includes('json') === true;
      answer.writeHead(response.statusCode ?? 502, rest);
      answer.end(isJson ? body.toString().replaceAll(upstream, `http://${host}`) : body);
    }
  });
  incoming.pipe(outgoing);
}

function fail(answer: ServerResponse, { kind }: Fault): void {
  if (kind === 'cut') answer.destroy();
  else if (kind === 'wrong')
    answer.writeHead(502, { 'content-type': 'text/html', connection: 'close' }).end('<h1>Bad gateway</h1>');
  // A stalled client waits until its own deadline.
}
