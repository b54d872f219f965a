import { checkOptions } from '../core/options.ts';
import type { GateOptions, Resolver } from './options.ts';

/** What one route says in place of its gate's options. Whatever is left out is as the gate has it. */
export interface RouteOptions<Request> extends Partial<Pick<GateOptions<Request>, 'account' | 'provider' | 'cached'>> {
  /** The operation, as the limits name it; where a framework tells the matched template, its adapter has a resolver for it. */
  readonly route?: string | Resolver<Request, string | undefined> | undefined;
  /** What a request of this route costs (S11). */
  readonly cost?: number | Resolver<Request, number> | undefined;
  /** Keeps outcomes by idempotency key; goes with `idempotent`. */
  readonly idempotency?: GateOptions<Request>['idempotency'];
  /** Reads key and fingerprint; false: keys mean nothing on this route. */
  readonly idempotent?: false | GateOptions<Request>['idempotent'];
}

const KNOWN = ['account', 'provider', 'cached', 'route', 'cost', 'idempotency', 'idempotent'];

/**
 * @returns the options of a gate for one route
 * @throws OptionError
 */
export function withRoute<Request>(gate: GateOptions<Request>, given: RouteOptions<Request>): GateOptions<Request> {
  checkOptions(given, KNOWN, 'route options');
  const { route, cost, idempotent, ...others } = given;
  const said = {
    ...others,
    route: typeof route === 'string' ? () => route : route,
    cost: typeof cost === 'number' ? () => cost : cost,
    idempotent: idempotent === false ? noKey : idempotent,
  };
  const all = { ...gate };
  for (const [name, value] of Object.entries(said)) if (value !== undefined) Object.assign(all, { [name]: value });
  return all.idempotency === undefined && idempotent === false ? { ...all, idempotent: undefined } : all;
}

function noKey(): undefined {}
