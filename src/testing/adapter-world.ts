import { createGate } from '../gate/create-gate.ts';
import type { GateEvent } from '../gate/events.ts';
import { createIdempotency, type Idempotency } from '../idempotency/idempotency.ts';
import type { SettingsInput } from '../idempotency/settings.ts';
import { createLimiter, type Limiter } from '../limits/limiter.ts';
import { createMemoryClaimStore } from '../stores/memory/claims.ts';
import { createMemoryStore } from '../stores/memory/limits.ts';
import type { AdapterSubject, SuiteAnswer, SuiteRequest, SuiteServer } from './adapter-subject.ts';
import { equal as equalAs } from './equal.ts';
import { createFakeClock, type FakeClock } from './fake-clock.ts';

/** What a case is lived in. */
export interface AdapterWorldOptions {
  /** @default ['1000/1m'] */
  readonly limit?: string[];
  readonly idempotency?: SettingsInput;
  /** Most of a request's body, in bytes. */
  readonly maxBodyBytes?: number;
  /** Resolvers in the place of the world's own. They know nothing of the framework's request. */
  readonly resolvers?: { account?(): never; route?(): never; cost?(): number; idempotent?(): never };
}

/** One rule, and how it shows. */
export interface AdapterCase {
  readonly name: string;
  readonly options?: AdapterWorldOptions;
  /** It is about connections, or about what is said on those of HTTP/1, and says nothing where there are none. */
  readonly needs?: 'a connection' | 'HTTP/1';
  run(world: AdapterWorld): Promise<void>;
}

/** One request; whatever is left out is a POST of JSON to `/things/1` by the account `a`. */
export interface Ask {
  readonly method?: string;
  readonly path?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array>;
  readonly signal?: AbortSignal;
}

/** A whole answer. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  readonly text: string;
}

type Handler = (request: SuiteRequest, write: (answer: Partial<SuiteAnswer>) => unknown) => unknown;

/** Longest wait for something that is to come. */
const PATIENCE_MS = 5_000;

/** A server with a gate in front of one handler, and what is seen of it from both sides. */
export class AdapterWorld {
  readonly clock: FakeClock = createFakeClock(1_000_000_000_000);
  readonly events: GateEvent[] = [];
  readonly limiter: Limiter;
  readonly idempotency: Idempotency;
  /** How often the handler was called. */
  runs = 0;
  /** What it does. */
  handler: Handler = (_, write) => write({ body: 'done' });
  #server: SuiteServer | undefined;

  private constructor({ limit = ['1000/1m'], idempotency = {} }: AdapterWorldOptions) {
    this.limiter = createLimiter({ store: createMemoryStore({ clock: this.clock }), limits: { allMethods: limit } });
    this.idempotency = createIdempotency({ store: createMemoryClaimStore(), ...idempotency });
  }

  static async open<Request>(
    subject: AdapterSubject<Request>,
    options: AdapterWorldOptions = {},
  ): Promise<AdapterWorld> {
    const world = new AdapterWorld(options);
    const { maxBodyBytes, resolvers } = options;
    const gate = createGate<Request>({
      limiter: world.limiter,
      idempotency: world.idempotency,
      account: (request) => {
        const account = subject.header(request, 'x-account');
        return account === 'none' ? undefined : account;
      },
      route: (request) => subject.route(request),
      idempotent: (request) =>
        subject.idempotentRequest(request, {
          scope: subject.header(request, 'x-app') ?? 'app_1',
          ...(maxBodyBytes === undefined ? {} : { maxBytes: maxBodyBytes }),
        }),
      onEvent: (event) => world.events.push(event),
      ...resolvers,
    });
    world.#server = await subject.listen({
      gate,
      routes: [
        { path: '/things/:id', options: undefined },
        { path: '/priced/:id', options: { route: 'POST /own', cost: 2 } },
      ],
      handle: async (request, write) => {
        world.runs++;
        await world.handler(request, (answer) => write({ status: 200, headers: {}, body: undefined, ...answer }));
      },
    });
    return world;
  }

  get port(): number | undefined {
    return this.#server?.port;
  }

  /** Whether there is what a case needs. */
  has(need: AdapterCase['needs']): boolean {
    if (need === undefined) return true;
    return this.port !== undefined && (need === 'a connection' || this.#server?.fetch === undefined);
  }

  /** Sends a request, and reads its answer to the end. */
  async ask(ask: Ask = {}): Promise<Reply> {
    const response = await this.open(ask);
    const bytes = new Uint8Array(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, bytes, text: new TextDecoder().decode(bytes) };
  }

  /** Sends a request. */
  open({
    method = 'POST',
    path = '/things/1',
    key,
    headers = {},
    body = '{"a":1}',
    signal: gone,
  }: Ask): Promise<Response> {
    const isBodyless = method === 'GET' || method === 'HEAD';
    const request = new Request(`http://127.0.0.1:${this.port ?? 80}${path}`, {
      method,
      headers: {
        'x-account': 'a',
        ...(isBodyless ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
        ...headers,
      },
      ...(isBodyless ? {} : { body: body as string, duplex: 'half' }),
      ...(gone && { signal: gone }),
    });
    const send = this.#server?.fetch ?? fetch;
    return send(request);
  }

  /** What the account `a` has left for the route. */
  async remaining(route = 'POST /things/:id'): Promise<number | undefined> {
    return (await this.limiter.peek({ account: 'a', route }))[0]?.remaining;
  }

  async close(): Promise<void> {
    await this.#server?.close();
    await this.idempotency.close({ timeoutMs: 100 });
  }
}

/** @throws Error where they differ */
export function equal(actual: unknown, expected: unknown): void {
  equalAs(actual, expected, ['the server', 'the rule']);
}

/** Type and status of an error object. */
export function problemOf({ status, headers, text }: Reply): unknown[] {
  const problem = JSON.parse(text) as Record<string, unknown>;
  equal(headers.get('content-type')?.split(';')[0], 'application/json');
  equal([problem.status, typeof problem.req_id, typeof problem.title], [status, 'string', 'string']);
  return [status, problem.type];
}

/** The rate-limit fields of an answer, by name. */
export function limitFields({ headers }: Reply): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => /ratelimit|^retry-after$/.test(name)));
}

export function pause(ms = 30): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until something has come about. */
export async function until(probe: () => unknown, what: string): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await probe())) {
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`);
    await pause(5);
  }
}

/** A promise, and the word that resolves it. */
export function signal(): { readonly given: Promise<void>; give(): void } {
  let give = (): void => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give };
}

export async function* pieces(...all: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of all) yield typeof piece === 'string' ? new TextEncoder().encode(piece) : piece;
}
