/**
 * For whatever turns a `Request` into a `Response`: Bun, Deno, Workers, Next.js, SvelteKit, Remix.
 * @module headgate/fetch
 */

import type { MaybePromise } from '../core/ports.ts';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { checkHandler, gateOf } from './shared/gate-of.ts';
import { enterGate } from './web/bridge.ts';

export { passageOf, servedFromCache } from './web/bridge.ts';
export { fieldOfBody, type IdempotentRequestOptions, idempotentRequest, type ReadBodyOptions } from './web/request.ts';

/** What a handler is given first: a request, or, in SvelteKit and Remix, an event with the request in it. */
export type FetchSubject = Request | { readonly request: Request };

/**
 * Puts a gate in front of a handler of web requests: Bun.serve, Deno.serve, Workers, Next.js route handlers and middleware, SvelteKit endpoints,
 * Remix loaders and actions. Whatever else the handler is given goes through, types and all.
 * @example
 * ```ts
 * Deno.serve(withHeadgate(gate, (request) => new Response('sent')));
 * export const POST = withHeadgate(gate, async (request: NextRequest, { params }: Context) => Response.json(await send(await request.json())));
 * ```
 */
export function withHeadgate<Subject extends FetchSubject, Rest extends unknown[], Answer>(
  gate: Gate<Subject>,
  handler: (subject: Subject, ...rest: Rest) => MaybePromise<Answer>,
  options?: RouteOptions<Subject>,
): (subject: Subject, ...rest: Rest) => Promise<Answer | Response> {
  const own = gateOf(gate, options);
  checkHandler(handler);
  return async (subject, ...rest) => {
    const exchange = {
      request: requestOf(subject),
      go: () => handler(subject, ...rest),
      waitUntil: waitUntilOf(rest),
    };
    return (await enterGate(own, subject, exchange)) as Answer | Response;
  };
}

/**
 * Mounts a gate as middleware of the common form, `(subject, next) => Response`.
 * @example
 * ```ts
 * const limited = headgate(gate);
 * export const handle = ({ event, resolve }) => limited(event, () => resolve(event)); // SvelteKit
 * ```
 */
export function headgate<Subject extends FetchSubject>(
  gate: Gate<Subject>,
  options?: RouteOptions<Subject>,
): <Answer>(subject: Subject, next: () => MaybePromise<Answer>) => Promise<Answer | Response> {
  const own = gateOf(gate, options);
  return async <Answer>(subject: Subject, next: () => MaybePromise<Answer>) =>
    (await enterGate(own, subject, { request: requestOf(subject), go: next })) as Answer | Response;
}

function requestOf(subject: FetchSubject): Request {
  return 'request' in subject ? subject.request : subject;
}

/** Workers and Next.js hand it over with the request; without it what is kept after a client has gone may be cut off. */
function waitUntilOf(rest: readonly unknown[]): ((promise: Promise<unknown>) => void) | undefined {
  const context = rest.find(
    (one): one is { waitUntil(promise: Promise<unknown>): void } =>
      typeof (one as { waitUntil?: unknown } | null | undefined)?.waitUntil === 'function',
  );
  return context && ((promise) => context.waitUntil(promise));
}
