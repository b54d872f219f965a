import { OptionError } from '../base/errors.ts';
import { checkFunctions, checkOptions } from '../base/options.ts';
import type { LimitInput } from '../core/limit.ts';
import type { LimitStore } from '../core/ports.ts';
import type { GateOptions } from '../gate/options.ts';
import type { ClientIpOptions } from './client-ip.ts';

/** Limits by the client's address, in place of a gate: `headgate({ perAddress: ['100/1m'] })`. */
export interface AddressLimits<Request>
  extends ClientIpOptions,
    Pick<
      GateOptions<Request>,
      | 'partitionKey'
      | 'allow'
      | 'deny'
      | 'cost'
      | 'finalCost'
      | 'cached'
      | 'answer'
      | 'rejection'
      | 'headers'
      | 'problemMediaType'
      | 'onEvent'
    > {
  /**
   * The allowance of one address, all routes together. All addresses of a block of IPv6 count as one: see `ipv6Prefix`.
   */
  readonly perAddress: LimitInput;
  /**
   * The common allowance of all addresses of one IPv6 /48, so that a network cannot take an allowance, and a record of
   * the store, for each of its addresses. A request that either limit rejects is charged to neither. `[]`: no such
   * limit.
   * @default the windows of `perAddress`, each with 16 times its max
   */
  readonly perNetwork?: LimitInput | undefined;
  /**
   * The address of the peer of the connection, if the adapter does not know it, or if you know better. Trusted proxies
   * are applied to it. A request without an address is refused with a 500.
   * @default the framework's address; `headgate/fetch` knows none
   */
  readonly address?: ((request: Request) => string | undefined) | undefined;
  /**
   * Where addresses are counted. If several limits use one Redis, each needs a store with its own `prefix`.
   * @default a separate memory store, with room for 65,536 addresses
   */
  readonly store?: LimitStore | undefined;
}

const KNOWN: readonly (keyof AddressLimits<never>)[] = [
  'perAddress',
  'perNetwork',
  'address',
  'trustedProxies',
  'header',
  'ipv6Prefix',
  'store',
  'allow',
  'deny',
  'cost',
  'finalCost',
  'cached',
  'answer',
  'rejection',
  'headers',
  'partitionKey',
  'problemMediaType',
  'onEvent',
  'logger',
  'validate',
];

/** Whether this is meant to be limits by address. */
export function isAddressLimits(value: unknown): value is AddressLimits<never> {
  return typeof value === 'object' && value !== null && 'perAddress' in value;
}

/** Whether limits by address know an option of this name. */
export function isAddressOption(name: string): boolean {
  return (KNOWN as readonly string[]).includes(name);
}

/**
 * @param knowsAddress whether the adapter knows the address of the peer
 * @throws OptionError
 */
export function checkAddressLimits<Request>(options: AddressLimits<Request>, knowsAddress: boolean): void {
  checkOptions(options, KNOWN, 'options');
  const { address, store, trustedProxies = 0 } = options;
  checkFunctions(options, ['address'], 'must be a function of the request');
  // Counted proxies write the address of the client, so the connection's address is not needed.
  const needsAddress = !knowsAddress && !(typeof trustedProxies === 'number' && trustedProxies > 0);
  if (needsAddress && address === undefined) {
    const reason =
      'must be a function that returns the address of the client, because a web request does not have it; ' +
      'or set trustedProxies to the number of your proxies';
    throw new OptionError('address', address, reason);
  }
  if (store !== undefined && typeof store?.consume !== 'function')
    throw new OptionError('store', store, 'must be a store of limits, such as createMemoryStore() returns');
}
