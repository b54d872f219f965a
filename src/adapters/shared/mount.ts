import { OptionError } from '../../core/errors.ts';
import type { Gate } from '../../gate/gate.ts';
import type { RouteOptions } from '../../gate/route-options.ts';

/**
 * The gate of one route. Adapters call it when a gate is mounted, so that a mistake shows at the start and not with
 * every request.
 * @throws OptionError
 */
export function gateForRoute<Request>(gate: Gate<Request>, options?: RouteOptions<Request>): Gate<Request> {
  if (typeof gate?.enter !== 'function') throw new OptionError('gate', gate, 'must be what createGate() returns');
  return options === undefined ? gate : gate.with(options);
}

/** @throws OptionError */
export function checkHandler(handler: unknown): void {
  if (typeof handler !== 'function') throw new OptionError('handler', handler, 'must be a function');
}

/** The name of a route: `POST /api/v1/chats/:id`. HEAD has the name of its GET, so that both share one allowance. */
export function routeName(method: string | undefined, template: string): string {
  const path = template.length > 1 && template.endsWith('/') ? template.slice(0, -1) : template;
  return `${method === 'HEAD' ? 'GET' : method} ${path}`;
}

/**
 * Makes a helper that takes a framework's context from one that takes the platform's request or response. Mark the call
 * as pure, so that bundlers can drop a helper that is not used.
 */
export function forContext<Context, Message, Rest extends unknown[], Result>(
  unwrap: (context: Context) => Message,
  helper: (message: Message, ...rest: Rest) => Result,
): (context: Context, ...rest: Rest) => Result {
  return (context, ...rest) => helper(unwrap(context), ...rest);
}
