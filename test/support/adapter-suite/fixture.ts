import { createGate } from '../../../src/gate/create-gate.ts';
import type { GateEvent } from '../../../src/gate/events.ts';
import type { GateOptions } from '../../../src/gate/options.ts';
import { createIdempotency, type Idempotency } from '../../../src/idempotency/idempotency.ts';
import type { SettingsInput } from '../../../src/idempotency/settings.ts';
import { createLimiter } from '../../../src/limits/limiter.ts';
import { partsOf } from '../../../src/limits/limiter-parts.ts';
import type { Limiter } from '../../../src/limits/ports.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { assertEqual as assertEqualFrom } from '../../../src/testing/assert-equal.ts';
import { createFakeClock, type FakeClock } from '../../../src/testing/fake-clock.ts';
import type { AdapterSubject, SuiteAnswer, SuiteRequest, SuiteServer } from './subject.ts';

/** What differs from the defaults in the fixture of one case. */
export interface AdapterFixtureOptions {
  /** @default ['1000/1m'] */
  readonly limit?: string[];
  /** The most requests of an account at the same time. */
  readonly inFlight?: number;
  readonly idempotency?: SettingsInput;
  /** Maximum length of a request's body, in bytes. */
  readonly maxBodyBytes?: number;
  /** They replace the fixture's own resolvers, and do not read the framework's request. */
  readonly resolvers?: { account?(): never; route?(): never; cost?(): number; idempotent?(): never };
  /** @default false */
  readonly providerAnswers?: GateOptions<unknown>['providerAnswers'];
  readonly cooldown?: GateOptions<unknown>['cooldown'];
  readonly finalCost?: GateOptions<unknown>['finalCost'];
  /** @default the gate's own answers */
  readonly answer?: GateOptions<unknown>['answer'];
  /** What happens to requests of the account `none`, which is undefined for the gate. */
  readonly onNoAccount?: GateOptions<unknown>['onNoAccount'];
  /** It does not read the framework's request. */
  readonly deny?: () => boolean | string;
  /** A gate in front of the first one, with one count for all accounts, as a limit by address has it. */
  readonly outer?: OuterGateOptions;
}

/** Options of the gate in front of the fixture's own. */
export interface OuterGateOptions extends Pick<GateOptions<unknown>, 'headers' | 'providerAnswers'> {
  /** @default ['1000/1m'] */
  readonly limit?: string[];
}

/** One rule, and a test of it. */
export interface AdapterCase {
  readonly name: string;
  readonly options?: AdapterFixtureOptions;
  /** The case is left out if the server has no connections, or does not speak HTTP/1 on them. */
  readonly needs?: 'a connection' | 'HTTP/1';
  run(fixture: AdapterFixture): Promise<void>;
}

/** One request; by default a POST of JSON to `/things/1` for the account `a`. */
export interface SentRequest {
  readonly method?: string;
  readonly path?: string;
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | ReadableStream<Uint8Array>;
  readonly signal?: AbortSignal;
}

/** A response that was read to its end. */
export interface BufferedResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  readonly text: string;
}

type Handler = (request: SuiteRequest, write: (answer: Partial<SuiteAnswer>) => unknown) => unknown;

/** Longest wait of {@link waitUntil}. */
const MAX_WAIT_MS = 5_000;

/** A server with a gate in front of one handler, and everything that a case can observe of it. */
export class AdapterFixture {
  readonly clock: FakeClock = createFakeClock(1_000_000_000_000);
  readonly events: GateEvent[] = [];
  /** Events of the gate in front, if there is one. */
  readonly outerEvents: GateEvent[] = [];
  readonly limiter: Limiter;
  readonly idempotency: Idempotency;
  /** How often the handler was called. */
  runs = 0;
  /** The handler behind the gate; a case may replace it. */
  handler: Handler = (_, write) => write({ body: 'done' });
  #server: SuiteServer | undefined;

  private constructor({ limit = ['1000/1m'], inFlight, idempotency = {} }: AdapterFixtureOptions) {
    const allMethods = { windows: limit, inFlight };
    this.limiter = createLimiter({ store: createMemoryStore({ clock: this.clock }), limits: { allMethods } });
    this.idempotency = createIdempotency({ store: createMemoryClaimStore(), ...idempotency });
  }

  static async start<Request>(
    subject: AdapterSubject<Request>,
    options: AdapterFixtureOptions = {},
  ): Promise<AdapterFixture> {
    const fixture = new AdapterFixture(options);
    const { maxBodyBytes, resolvers, providerAnswers, cooldown, finalCost, answer, onNoAccount, deny, outer } = options;
    const common = {
      idempotency: fixture.idempotency,
      idempotent: (request: Request) =>
        subject.idempotentRequest(request, {
          scope: subject.header(request, 'x-app') ?? 'app_1',
          compares: ['X-User', 'cookie'],
          secret: 'suite',
          ...(maxBodyBytes === undefined ? {} : { maxBytes: maxBodyBytes }),
        }),
    };
    const gate = createGate<Request>({
      ...common,
      limiter: fixture.limiter,
      account: (request) => {
        const account = subject.header(request, 'x-account');
        return account === 'none' ? undefined : account;
      },
      route: (request) => subject.route(request),
      providerAnswers,
      cooldown,
      finalCost,
      answer,
      onNoAccount,
      deny,
      onEvent: (event) => fixture.events.push(event),
      logger: false,
      ...resolvers,
    });
    const { limit: outerLimit = ['1000/1m'], ...outerOptions } = outer ?? {};
    const outerGate = createGate<Request>({
      ...common,
      ...outerOptions,
      limiter: createLimiter({
        store: createMemoryStore({ clock: fixture.clock }),
        limits: outerLimit,
      }),
      account: () => '127.0.0.1',
      onEvent: (event) => fixture.outerEvents.push(event),
      logger: false,
    });
    fixture.#server = await subject.listen({
      gates: outer === undefined ? [gate] : [outerGate, gate],
      routes: [
        { path: '/things/:id', options: undefined },
        { path: '/priced/:id', options: { route: 'POST /own', cost: 2, limits: ['4/1m'] } },
      ],
      handle: async (request, write) => {
        fixture.runs++;
        await fixture.handler(request, (answer) => write({ status: 200, headers: {}, body: undefined, ...answer }));
      },
    });
    return fixture;
  }

  get port(): number | undefined {
    return this.#server?.port;
  }

  /** Whether the server has what a case needs. */
  has(need: AdapterCase['needs']): boolean {
    if (need === undefined) return true;
    return this.port !== undefined && (need === 'a connection' || this.#server?.fetch === undefined);
  }

  /** Sends a request, and reads the response to its end. */
  async send(sent: SentRequest = {}): Promise<BufferedResponse> {
    const response = await this.fetch(sent);
    const bytes = new Uint8Array(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, bytes, text: new TextDecoder().decode(bytes) };
  }

  /** Sends a request. */
  fetch({
    method = 'POST',
    path = '/things/1',
    key,
    headers = {},
    body = '{"a":1}',
    signal,
  }: SentRequest): Promise<Response> {
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
      ...(signal && { signal }),
    });
    const send = this.#server?.fetch ?? fetch;
    return send(request);
  }

  /** How many requests are in flight. */
  get running(): number | undefined {
    return partsOf(this.limiter)?.slots()?.size;
  }

  /** How many more requests the account `a` may send to the route. */
  async remaining(route = 'POST /things/:id'): Promise<number | undefined> {
    return (await this.limiter.peek({ account: 'a', route }))[0]?.remaining;
  }

  async close(): Promise<void> {
    await this.#server?.close();
    await this.idempotency.close({ timeoutMs: 100 });
  }
}

/** @throws Error if they differ */
export function assertEqual(actual: unknown, expected: unknown): void {
  assertEqualFrom(actual, expected, ['the server', 'the rule']);
}

/** Checks an error object, and returns its status and type. */
export function readProblem({ status, headers, text }: BufferedResponse): unknown[] {
  const problem = JSON.parse(text) as Record<string, unknown>;
  assertEqual(headers.get('content-type')?.split(';')[0], 'application/json');
  assertEqual([problem.status, typeof problem.req_id, typeof problem.title], [status, 'string', 'string']);
  return [status, problem.type];
}

/** The rate-limit fields of a response, by name. */
export function limitFields({ headers }: BufferedResponse): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => /ratelimit|^retry-after$/.test(name)));
}

export function pause(ms = 30): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Polls until `probe` returns something true. `what` describes it for the error. */
export async function waitUntil(probe: () => unknown, what: string): Promise<void> {
  const end = performance.now() + MAX_WAIT_MS;
  while (!(await probe())) {
    if (performance.now() > end) throw new Error(`not within ${MAX_WAIT_MS} ms: ${what}`);
    await pause(5);
  }
}

/** A promise, and the function that resolves it. */
export function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** A stream of these chunks. */
export async function* chunks(...all: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of all) yield typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk;
}
