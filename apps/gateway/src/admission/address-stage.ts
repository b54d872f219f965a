import type { Decision } from 'headgate';
import type { ClientIp } from 'headgate/client-ip';
import type { FailureEvent, GateAnswer } from 'headgate/gate';
import { createAddressGate, decorateStore } from 'headgate/internal';
import type { LimitStore, MaybePromise } from 'headgate/stores';
import { isPromise } from '../base/is-promise.ts';
import { consumerId } from '../config/account-source.ts';
import type { Config } from '../config/schema.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { accountOfAddress } from './accounts.ts';

/** Options of {@link createAddressStage}. */
export interface AddressStageOptions {
  readonly perAddress: NonNullable<Config['perAddress']>;
  readonly config: Pick<Config, 'clientAddress' | 'headers'>;
  readonly clientIp: ClientIp;
  readonly store: LimitStore;
  readonly onDecision: (requestId: string, decision: Decision) => void;
  readonly onFailure: (event: FailureEvent) => void;
}

/**
 * Returns the answer to a request whose address has no allowance left.
 * @param address by default that of the client, as the proxies in front of the gateway say
 */
export type AddressStage = (exchange: Exchange, address?: string) => MaybePromise<GateAnswer | undefined>;

/** The name of all routes together. */
const EVERY_ROUTE = '*';

/** The stage in front of all others: it limits addresses, whatever they ask for, and whether or not their key is valid. */
export function createAddressStage(options: AddressStageOptions): AddressStage {
  const { perAddress, config, clientIp, onDecision, onFailure } = options;
  const gate = createAddressGate<string>(
    {
      perAddress: perAddress.windows,
      perNetwork: perAddress.perNetwork,
      ipv6Prefix: config.clientAddress.ipv6Prefix,
      store: withOwnCounts(options.store),
      headers: config.headers,
      // The config is checked separately, and `clientIp` warns about proxies.
      validate: false,
      logger: false,
      onEvent: (event) => event.type === 'failure' && onFailure(event),
    },
    // `clientIp` has read the fields.
    { address: (address) => address.split('/', 1)[0], fields: () => ({}) },
  );
  return (exchange, given) => {
    const { id, request } = exchange;
    const address = given ?? clientIp(request.socket.remoteAddress, request.headers);
    // Only a connection that is closed has none, so no client gets an answer.
    if (address === undefined) return undefined;
    const account = accountOfAddress(address);
    const answerOf = (entry: Awaited<ReturnType<typeof gate.enter>>): GateAnswer | undefined => {
      if (entry.decision !== undefined) onDecision(id, withNames(entry.decision, account.id));
      if (entry.kind === 'proceed') return undefined;
      exchange.account = account;
      return entry;
    };
    const entry = gate.enter(address, id);
    return isPromise(entry) ? entry.then(answerOf) : answerOf(entry);
  };
}

/** Otherwise a block or a reset of an address, which is about routes that count by it, could apply here too. */
function withOwnCounts(store: LimitStore): LimitStore {
  const named = (account: string): string => consumerId('address', `${EVERY_ROUTE}:${account}`);
  return decorateStore(store, {
    consume:
      (consume) =>
      (account, ...rest) =>
        consume(named(account), ...rest),
    peek:
      (peek) =>
      (account, ...rest) =>
        peek(named(account), ...rest),
  });
}

/** A decision as operators see it. An address of IPv6 is counted under its network. */
function withNames(decision: Decision, account: string): Decision {
  const names: Readonly<Record<PropertyKey, string>> = { account, route: EVERY_ROUTE };
  return new Proxy(decision, { get: (target, name) => names[name] ?? Reflect.get(target, name, target) });
}
