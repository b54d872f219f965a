import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cleanUpLater } from './clean-up.ts';

/** A process behind a balancer. */
export interface Backend {
  readonly url: string;
  readonly adminUrl: string;
}

/**
 * A load balancer like those of operators: it asks `/readyz` of each process, sends requests to the ready processes in
 * turn over connections that it keeps, and never repeats a request.
 */
export interface Balancer {
  readonly url: string;
  /** Begins to ask a process, and waits until it is ready. */
  add(backend: Backend): Promise<void>;
  remove(backend: Backend): void;
}

const CHECK_MS = 50;

export async function startBalancer(): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true });
  const backends = new Map<Backend, boolean>();
  let turn = 0;
  const check = async (backend: Backend): Promise<boolean> => {
    const isReady = await fetch(`${backend.adminUrl}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (backends.has(backend)) backends.set(backend, isReady);
    return isReady;
  };
  const timer = setInterval(() => void Promise.all([...backends.keys()].map(check)), CHECK_MS);
  const server = createServer((incoming, answer) => {
    const ready = [...backends].filter(([, isReady]) => isReady).map(([backend]) => backend);
    const backend = ready[turn++ % ready.length];
    if (backend === undefined) answer.writeHead(503).end('no process is ready');
    else forward(backend, agent, incoming, answer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUpLater(async () => {
    clearInterval(timer);
    agent.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add: async (backend) => {
      backends.set(backend, false);
      while (!(await check(backend))) await new Promise((resolve) => setTimeout(resolve, CHECK_MS));
    },
    remove: (backend) => void backends.delete(backend),
  };
}

function forward({ url }: Backend, agent: Agent, incoming: IncomingMessage, answer: ServerResponse): void {
  const { method, headers } = incoming;
  const outgoing = request(new URL(incoming.url ?? '/', url), { method, headers, agent });
  outgoing.on('error', (error) => {
    if (answer.headersSent) answer.destroy();
    else answer.writeHead(502).end(error.message);
  });
  outgoing.on('response', (response) => {
    // The connection to the process is the balancer's own matter.
    const { connection: _, 'keep-alive': __, ...rest } = response.headers;
    answer.writeHead(response.statusCode ?? 502, rest);
    response.pipe(answer);
  });
  incoming.pipe(outgoing);
}
