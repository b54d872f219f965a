import type { Gate } from '../gate/gate.ts';
import type { IdempotentRequest } from '../gate/idempotent-request.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import type { KeyFault } from '../http/idempotency-key.ts';

/** What a handler of the suite reads of its request. */
export interface SuiteRequest {
  /** The body, as the framework gives it to a handler. */
  body(): Uint8Array | Promise<Uint8Array>;
}

/** What a handler of the suite answers. */
export interface SuiteAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Text, bytes, nothing, or pieces that are to be streamed as they come. */
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
}

/**
 * The handler behind the gate. It rejects or throws where the suite wants a handler that fails, before or after it wrote: what the framework does
 * with an error of a handler is to be done with it.
 * @param write answers in the framework's own manner; is called again by a handler that answers twice
 */
export type SuiteHandler = (request: SuiteRequest, write: (answer: SuiteAnswer) => unknown) => Promise<void>;

/** What the subject is to serve. */
export interface SuiteApp<Request> {
  /** To be mounted in front of every route. */
  readonly gate: Gate<Request>;
  /** For every method; the paths are `/things/:id`, without options of its own, and `/priced/:id`, with some. */
  readonly routes: readonly { readonly path: string; readonly options: RouteOptions<Request> | undefined }[];
  readonly handle: SuiteHandler;
}

/** A server that runs. */
export interface SuiteServer {
  /** On 127.0.0.1; where there is no socket, give `fetch`. */
  readonly port?: number | undefined;
  /** In place of a socket, or of HTTP/1 on it. Cases that need the one or the other are then left out. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined;
  /** Stops it, idle connections included. */
  close(): unknown;
}

/** The adapter to be judged. */
export interface AdapterSubject<Request> {
  readonly name: string;
  /** Serves anew; called for every case. */
  listen(app: SuiteApp<Request>): SuiteServer | Promise<SuiteServer>;
  /** A header of the framework's request, as a resolver reads it. */
  header(request: Request, name: string): string | undefined;
  /** `POST /things/:id`: the adapter's own resolver of the matched route, where it has one. */
  route(request: Request): string | undefined;
  /** The adapter's own. */
  idempotentRequest(
    request: Request,
    options: { readonly scope: string; readonly maxBytes?: number },
  ): IdempotentRequest | KeyFault | undefined | Promise<IdempotentRequest | KeyFault | undefined>;
  /** Cases that do not hold, by name, each with the reason. They are run all the same: one that holds after all is a fault. */
  readonly gaps?: Readonly<Record<string, string>> | undefined;
}
