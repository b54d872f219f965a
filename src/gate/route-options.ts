import { checkOptions } from '../core/options.ts';
import type { GateOptions } from './options.ts';
import type { Resolver } from './resolver.ts';

/** Options of one route. They replace those of its gate; options that are absent keep the gate's value. */
export interface RouteOptions<Request>
  extends Partial<Pick<GateOptions<Request>, 'account' | 'onNoAccount' | 'deny' | 'allow' | 'provider' | 'cached'>> {
  /** The operation, as the limits name it. If the framework knows the template, its adapter has a resolver for it. */
  readonly route?: string | Resolver<Request, string | undefined> | undefined;
  /** The cost of a request of this route, a positive integer (S11). */
  readonly cost?: number | Resolver<Request, number> | undefined;
  /** Stores outcomes under their idempotency keys. Requires `idempotent`. */
  readonly idempotency?: GateOptions<Request>['idempotency'];
  /** Reads key, scope and fingerprint. False: this route ignores idempotency keys. */
  readonly idempotent?: false | GateOptions<Request>['idempotent'];
}

const KNOWN = [
  'account',
  'onNoAccount',
  'deny',
  'allow',
  'provider',
  'cached',
  'route',
  'cost',
  'idempotency',
  'idempotent',
];

/**
 * @returns the options of a gate for one route
 * @throws OptionError
 */
export function withRoute<Request>(gate: GateOptions<Request>, given: RouteOptions<Request>): GateOptions<Request> {
  checkOptions(given, KNOWN, 'route options');
  const { route, cost, idempotent, ...others } = given;
  const replaced = {
    ...others,
    route: typeof route === 'string' ? () => route : route,
    cost: typeof cost === 'number' ? () => cost : cost,
    idempotent: idempotent === false ? ignoreKey : idempotent,
  };
  const all = { ...gate };
  for (const [name, value] of Object.entries(replaced)) if (value !== undefined) Object.assign(all, { [name]: value });
  return all.idempotency === undefined && idempotent === false ? { ...all, idempotent: undefined } : all;
}

function ignoreKey(): undefined {}
