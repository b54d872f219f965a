import type { IdempotentRequestOptions } from '../../../src/adapters/shared/request.ts';
import type { Gate } from '../../../src/gate/gate.ts';
import type { IdempotentRequest } from '../../../src/gate/idempotent-request.ts';
import type { RouteOptions } from '../../../src/gate/route-options.ts';
import type { KeyFault } from '../../../src/http/idempotency-key.ts';

/** The part of a request that the handlers of the suite read. */
export interface SuiteRequest {
  /** The body as the framework passes it to a handler. */
  body(): Uint8Array | Promise<Uint8Array>;
}

/** A response of a handler of the suite. */
export interface SuiteAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Text, bytes, nothing, or chunks that must be streamed as they come. */
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
}

/**
 * The handler behind the gate. In some cases it rejects or throws, before or after it called `write`. Pass the error to
 * the framework as if the framework's own handler had failed.
 * @param write sends the response with the framework's own functions; in one case the handler calls it twice
 */
export type SuiteHandler = (request: SuiteRequest, write: (answer: SuiteAnswer) => unknown) => Promise<void>;

/** What the server of the subject must serve. */
export interface SuiteApp<Request> {
  /** Must be mounted in front of every route, in this order; one gate in most cases. */
  readonly gates: readonly [Gate<Request>, ...Gate<Request>[]];
  /**
   * Routes for every method: `/things/:id` without options, and `/priced/:id` with options. The case that uses the
   * options has one gate.
   */
  readonly routes: readonly { readonly path: string; readonly options: RouteOptions<Request> | undefined }[];
  readonly handle: SuiteHandler;
}

/** A running server. */
export interface SuiteServer {
  /** The port on 127.0.0.1. Leave it out if the server has no socket, and set `fetch`. */
  readonly port?: number | undefined;
  /**
   * Sends requests if there is no socket, or if the socket does not speak HTTP/1. Cases that need these are then left
   * out.
   */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined;
  /** Stops the server, and closes its idle connections. */
  close(): unknown;
}

/** The adapter under test. */
export interface AdapterSubject<Request> {
  readonly name: string;
  /** Starts a new server. Called for every case. */
  listen(app: SuiteApp<Request>): SuiteServer | Promise<SuiteServer>;
  /** Returns a header of the framework's request, as a resolver reads it. */
  header(request: Request, name: string): string | undefined;
  /** Returns `POST /things/:id`, by the adapter's own `routeOf` if it has one. */
  route(request: Request): string | undefined;
  /** The adapter's own `idempotentRequest`. */
  idempotentRequest(
    request: Request,
    options: Pick<IdempotentRequestOptions, 'scope' | 'maxBytes' | 'compares' | 'secret'>,
  ): IdempotentRequest | KeyFault | undefined | Promise<IdempotentRequest | KeyFault | undefined>;
  /**
   * Names of the cases that fail, each with the reason. These cases are run too, and must fail: a gap that was closed
   * must be removed.
   * @default {}
   */
  readonly gaps?: Readonly<Record<string, string>> | undefined;
}
