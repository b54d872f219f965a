import { idempotentRequest, withHeadgate } from '../../src/adapters/fetch.ts';
import type { GateEvent } from '../../src/gate/index.ts';
import type { SettingsInput } from '../../src/idempotency/index.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFaultyClaims } from './faulty-claims.ts';

/** A web handler may return undefined. */
type Result = Response | undefined;
type Handler = (request: Request, ...rest: unknown[]) => Result | Promise<Result>;

export interface KeyedWebOptions {
  readonly settings?: SettingsInput;
  readonly gate?: Partial<GateOptions<Request>>;
}

/** A handler of web requests behind a gate that supports idempotency keys, without a server. */
export function keyedWeb(handler: Handler, { settings = {}, gate: gateOptions }: KeyedWebOptions = {}) {
  const line = createFaultyClaims(createMemoryClaimStore());
  const idempotency = createIdempotency({ store: line, ...settings });
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1000/1m'] } });
  const events: GateEvent[] = [];
  let runs = 0;
  const gate = createGate<Request>({
    limiter,
    idempotency,
    account: () => 'a',
    route: ({ method }) => method,
    idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
    onEvent: (event) => events.push(event),
    logger: false,
    ...gateOptions,
  });
  const fetch = withHeadgate(gate, (request: Request, ...rest: unknown[]) => {
    runs++;
    return handler(request, ...rest);
  });
  return {
    line,
    idempotency,
    events,
    fetch,
    get runs() {
      return runs;
    },
    remaining: async () => (await limiter.peek({ account: 'a', route: 'POST' }))[0]?.remaining,
    /** Sends a POST with the key `k`, unless `init` has another one. */
    async post(init: RequestInit = {}, ...rest: unknown[]): Promise<Response> {
      return (await fetch(postOf(init), ...rest)) as Response;
    },
    /** Sends the same request again, and returns what is compared of the response. */
    async retry(init: RequestInit = {}): Promise<{ status: number; replayed: string | null; text: string }> {
      const response = (await fetch(postOf(init))) as Response;
      const replayed = response.headers.get('idempotency-replayed');
      return { status: response.status, replayed, text: await response.text() };
    },
  };
}

export function postOf({ headers, ...init }: RequestInit = {}): Request {
  const all = { 'idempotency-key': 'k', 'content-type': 'application/json', ...(headers as Record<string, string>) };
  return new Request('http://x/', { method: 'POST', body: '{"a":1}', ...init, headers: all });
}
