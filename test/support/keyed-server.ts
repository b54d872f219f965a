import type { IncomingMessage, OutgoingHttpHeaders, RequestListener, ServerResponse } from 'node:http';
import connect from 'connect';
import { type Listening, listen } from 'headgate-testbed/listen';
import { type Reply, send } from 'headgate-testbed/raw-http';
import { afterEach } from 'vitest';
import { headgate, idempotentRequest, withHeadgate } from '../../src/adapters/node.ts';
import type { ClaimStore } from '../../src/core/ports.ts';
import type { GateEvent } from '../../src/gate/index.ts';
import type { SettingsInput } from '../../src/idempotency/index.ts';
import {
  createGate,
  createIdempotency,
  createLimiter,
  type GateOptions,
  type Idempotency,
  type Limiter,
} from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFaultyClaims, type FaultyClaims } from './faulty-claims.ts';
import { listenHttp2 } from './http2.ts';

export interface KeyedServer extends Listening {
  /** The claim store, behind a connection that a test can make unreliable. */
  readonly line: FaultyClaims;
  readonly idempotency: Idempotency;
  readonly limiter: Limiter;
  readonly events: GateEvent[];
  /** How often the handler ran. */
  readonly runs: number;
  /** Sends a POST with the key `k` and the account `a`, unless `headers` has others. */
  post(path?: string, headers?: OutgoingHttpHeaders, body?: string | Buffer, signal?: AbortSignal): Promise<Reply>;
}

export interface KeyedServerOptions {
  readonly settings?: SettingsInput;
  /** Several servers with one store are several processes. */
  readonly claims?: ClaimStore;
  readonly allMethods?: string[];
  readonly gate?: Partial<GateOptions<IncomingMessage>>;
  readonly inConnect?: boolean;
  /** Serves HTTP/2. `server` is missing then. */
  readonly http2?: boolean;
}

/** {@link serveKeyed} for the tests of a file. `open` are the servers of the current test; they are closed after it. */
export function keyedServers(): { readonly serve: typeof serveKeyed; readonly open: readonly KeyedServer[] } {
  const open: KeyedServer[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((server) => server.close()));
  });
  return {
    open,
    async serve(handler, options) {
      const server = await serveKeyed(handler, options);
      open.push(server);
      return server;
    },
  };
}

/** Starts a real server with a handler behind a gate that supports idempotency keys. */
export async function serveKeyed(
  handler: (request: IncomingMessage, response: ServerResponse) => unknown,
  {
    settings = {},
    claims = createMemoryClaimStore(),
    allMethods = ['1000/1m'],
    gate: gateOptions,
    inConnect = false,
    http2 = false,
  }: KeyedServerOptions = {},
): Promise<KeyedServer> {
  let runs = 0;
  const counted = (request: IncomingMessage, response: ServerResponse) => {
    runs++;
    return handler(request, response);
  };
  const events: GateEvent[] = [];
  const line = createFaultyClaims(claims);
  const idempotency = createIdempotency({ store: line, ...settings });
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods } });
  const gate = createGate<IncomingMessage>({
    limiter,
    idempotency,
    account: ({ headers }) => headers['x-account'] as string | undefined,
    // Tests of bodies and responses need no account.
    onNoAccount: 'pass',
    route: ({ method, url }) => `${method} ${url}`,
    idempotent: (request) => idempotentRequest(request, { scope: String(request.headers['x-app'] ?? 'app_1') }),
    onEvent: (event) => events.push(event),
    logger: false,
    ...gateOptions,
  });
  const listener = inConnect ? mounted(counted) : (withHeadgate(gate, counted) as RequestListener);
  const over2 = http2 ? await listenHttp2(listener as never) : undefined;
  const listening = (over2 as unknown as Listening | undefined) ?? (await listen(listener));
  function mounted(last: (request: IncomingMessage, response: ServerResponse) => void): RequestListener {
    const app = connect();
    app.use(headgate(gate));
    app.use(last);
    return app;
  }
  return {
    ...listening,
    line,
    idempotency,
    limiter,
    events,
    get runs() {
      return runs;
    },
    post(path = '/', headers = {}, body = '{"a":1}', signal) {
      const all = { 'x-account': 'a', 'idempotency-key': 'k', 'content-type': 'application/json', ...headers };
      if (over2 === undefined) return send(listening.port, { method: 'POST', path, headers: all, body });
      const url = `http://127.0.0.1:${over2.port}${path}`;
      const init = { method: 'POST', headers: all as Record<string, string>, body, ...(signal && { signal }) };
      return over2.fetch(new Request(url, init)).then(toReply);
    },
    async close() {
      await listening.close();
      line.always = 'ok';
      await idempotency.close({ timeoutMs: 100 });
    },
  };
}

async function toReply(response: Response): Promise<Reply> {
  const body = await response.arrayBuffer().catch(() => undefined);
  const bytes = Buffer.from(body ?? new ArrayBuffer(0));
  const headers = Object.fromEntries(response.headers);
  const rawHeaders = [...response.headers].flat();
  return {
    status: response.status,
    headers,
    rawHeaders,
    body: bytes,
    text: bytes.toString(),
    broken: body === undefined,
  };
}
