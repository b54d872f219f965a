import { createAddressGate } from '../../address/gate.ts';
import { type AddressLimits, isAddressLimits, isAddressOption } from '../../address/options.ts';
import type { PeerReader } from '../../address/peer.ts';
import { OptionError } from '../../base/errors.ts';
import { checkOptions, isPlainObject } from '../../base/options.ts';
import type { Gate } from '../../gate/gate.ts';
import type { RouteOptions } from '../../gate/route-options.ts';

/**
 * The gate of one route. Adapters call it when a gate is mounted, so that a mistake shows at the start and not with
 * every request.
 * @param given a gate, or limits by address, of which a gate is made
 * @param peer reads the address of a request's client
 * @throws OptionError
 */
export function gateForRoute<Request>(
  given: Gate<Request> | AddressLimits<Request>,
  peer: PeerReader<Request>,
  options?: RouteOptions<Request>,
): Gate<Request> {
  if (isAddressLimits(given)) {
    if (options !== undefined) checkOptions(options, [], 'route options', () => 'write it beside perAddress');
    return createAddressGate(given, peer);
  }
  if (typeof given?.enter !== 'function') throw notMountable(given);
  return options === undefined ? given : given.with(options);
}

function notMountable(given: unknown): OptionError {
  const { consume, ...others } = Object(given) as Record<string, unknown>;
  if (typeof consume === 'function')
    return new OptionError('gate', given, 'must not be a limiter: pass createGate({ limiter, … })', 'a limiter');
  // Perhaps limits by address, with a misspelt name.
  const unknown = isPlainObject(given) ? Object.keys(others).find((name) => !isAddressOption(name)) : undefined;
  // A framework that is given `headgate` itself calls it with its own app, request or context.
  const isOfFramework = given === Object(given) && !isPlainObject(given) && !(given instanceof Promise);
  const hint = isOfFramework ? ': mount headgate(gate), not headgate' : unknown && `, which has no option ${unknown}`;
  return new OptionError(
    'gate',
    given,
    `must be what createGate() returns, or { perAddress: ["100/1m"] }${hint ?? ''}`,
  );
}

/**
 * Checks the argument of a helper, since the helpers of all adapters share their names.
 * @param isRight whether the argument fits the helper
 * @param expected the right argument, with its article
 * @throws OptionError
 */
export function checkArgument(isRight: boolean, name: string, given: unknown, expected: string): void {
  if (!isRight)
    throw new OptionError(name, given, `must be ${expected}: import this helper from your framework's adapter`);
}

/**
 * Refuses what a framework passes to what `headgate()` of another framework's adapter returns. Call it before anything
 * is asynchronous: Express 4 does not catch what middleware rejects with.
 * @param expected the adapter's argument, with its article
 * @param done the third argument, if there is one: where Express and Fastify expect an error. Fastify does not catch
 * what a plugin throws.
 * @throws OptionError
 */
export function refuseMount(name: string, given: unknown, expected: string, done: unknown): never {
  const reason = `must be ${expected}: import headgate from your framework's adapter`;
  const error = new OptionError(name, given, reason);
  if (typeof done !== 'function') throw error;
  return done(error) as never;
}

/**
 * Refuses a gate that throws in front of a handler that no framework calls: nothing would handle its errors.
 * @throws OptionError
 */
export function checkAnswers(gate: Gate<never>): void {
  if (gate.throws === true)
    throw new OptionError('rejection', 'throw', "must be 'answer' here: no framework handles the errors of the gate");
}

/** @throws OptionError */
export function checkHandler(handler: unknown): void {
  if (typeof handler !== 'function') throw new OptionError('handler', handler, 'must be a function');
}

/** The name of a route: `POST /api/v1/chats/:id`. HEAD takes the name of its GET, so that both share one allowance. */
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
  // The helper checks its argument. Without an object there is nothing to unwrap.
  return (context, ...rest) => helper(unwrap(Object(context)), ...rest);
}
