import { OptionError } from '../../core/errors.ts';
import type { Gate } from '../../gate/gate.ts';
import type { RouteOptions } from '../../gate/route-options.ts';

/**
 * The gate of one route.
 * @throws OptionError at the start, rather than with each request
 */
export function gateOf<Request>(gate: Gate<Request>, options?: RouteOptions<Request>): Gate<Request> {
  if (typeof gate?.enter !== 'function') throw new OptionError('gate', gate, 'must be what createGate() returns');
  return options === undefined ? gate : gate.with(options);
}

/** @throws OptionError */
export function checkHandler(handler: unknown): void {
  if (typeof handler !== 'function') throw new OptionError('handler', handler, 'must be a function');
}
