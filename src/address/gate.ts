import { LimitError, OptionError } from '../base/errors.ts';
import { formatWindow, type Limit, parseLimit } from '../core/limit.ts';
import { createWindowSet } from '../core/window-set.ts';
import { createGate } from '../gate/create-gate.ts';
import type { Gate } from '../gate/gate.ts';
import { checkRouteOptions } from '../gate/route-options.ts';
import { createLimiter } from '../limits/limiter.ts';
import { createMemoryStore } from '../stores/memory/limits.ts';
import { createClientIp } from './client-ip.ts';
import { type AddressLimits, checkAddressLimits } from './options.ts';
import type { PeerReader } from './peer.ts';
import { type AddressWindowSets, createAddressStore } from './store.ts';

/** The smallest block of IPv6 that the internet routes, and the usual block of one site. */
const NETWORK_BITS = 48;
/** The allowance of a network, in allowances of one address. */
const ADDRESSES_PER_NETWORK = 16;
const NOT_LIST = 'must return one address, not a list: trustedProxies reads the list of your proxies';

/**
 * Creates the gate that limits requests by address.
 * @throws LimitError, OptionError
 */
export function createAddressGate<Request>(options: AddressLimits<Request>, peer: PeerReader<Request>): Gate<Request> {
  checkAddressLimits(options, peer.address !== undefined);
  const {
    perAddress,
    perNetwork,
    address = peer.address,
    trustedProxies,
    header,
    ipv6Prefix,
    store,
    ...shown
  } = options;
  const { validate, logger } = options;
  const proxies = { trustedProxies, header, ipv6Prefix, logger };
  const clientIp = createClientIp({ ...proxies, validate });
  /** For an address that is not the connected address, because `address` already knows of the proxies. */
  const givenIp = createClientIp({ ...proxies, validate: false });
  const account = (request: Request): string => {
    const connected = address?.(request);
    const isGiven = options.address !== undefined && connected !== peer.address?.(request);
    const client = (isGiven ? givenIp : clientIp)(connected, peer.fields(request));
    if (client !== undefined) return client;
    if (connected?.includes(',')) throw new OptionError('address', connected, NOT_LIST);
    // Without a name the request would not be limited, or would share a count with all others like it.
    const { advice = 'set `address`, or `trustedProxies` if a proxy connects over a Unix socket' } = peer;
    const reason = `the request has none: ${advice}; a client that has left has none either`;
    throw new OptionError('address', connected, reason);
  };
  const windowSets = createWindowSets(options);
  const limiter = createLimiter({
    store: createAddressStore(store ?? createMemoryStore(), windowSets),
    limits: perAddress,
    validate,
    logger,
  });
  return withAnswerOnly(createGate({ ...shown, limiter, account }));
}

/** @throws LimitError, OptionError */
function createWindowSets({ perAddress, perNetwork, ipv6Prefix }: AddressLimits<never>): AddressWindowSets {
  const address = requestsOnly(parseLimit(perAddress, 'perAddress'), 'perAddress');
  if (address.length === 0) throw new OptionError('perAddress', perAddress, 'must have a window, such as "100/1m"');
  const hasNetworks = ipv6Prefix === undefined || ipv6Prefix > NETWORK_BITS;
  if (perNetwork !== undefined && !hasNetworks)
    throw new OptionError('perNetwork', perNetwork, `needs an ipv6Prefix of more than ${NETWORK_BITS} bits`);
  const network =
    perNetwork === undefined
      ? limitOfNetwork(address)
      : requestsOnly(parseLimit(perNetwork, 'perNetwork'), 'perNetwork');
  const networkIp = createClientIp({ ipv6Prefix: NETWORK_BITS, validate: false });
  const isLimited = hasNetworks && network.length > 0;
  return {
    ofAddress: createWindowSet(address, []),
    inNetwork: createWindowSet(address, network, 'account', 'least'),
    networkOf: (name) => (isLimited && name.includes(':') ? networkIp(name.split('/', 1)[0], {}) : undefined),
  };
}

/** An address and its network are decided as one window set, which has one unit. */
function requestsOnly(limit: Limit, place: string): Limit {
  const other = limit.find(({ unit }) => unit !== undefined);
  if (other !== undefined) throw new LimitError(place, formatWindow(other), 'limits by address count requests only');
  return limit;
}

function limitOfNetwork(address: Limit): Limit {
  return address.map(({ max, durationMs }) => ({
    max: Math.min(max * ADDRESSES_PER_NETWORK, Number.MAX_SAFE_INTEGER),
    durationMs,
  }));
}

/**
 * The options of a route are often meant for another gate on the same route, which limits accounts. They must not lift
 * the limit of an address, and their resolvers may need facts that are known only behind an authentication. Only
 * `answer` and `rejection` count.
 */
function withAnswerOnly<Request>(gate: Gate<Request>): Gate<Request> {
  return {
    throws: gate.throws,
    enter: (request, requestId, outer) => gate.enter(request, requestId, outer),
    with(options) {
      checkRouteOptions(options);
      return withAnswerOnly(gate.with({ answer: options.answer, rejection: options.rejection }));
    },
  };
}
