import type { IncomingMessage } from 'node:http';
import { type ClientIp, createClientIp } from 'headgate/client-ip';
import { type AccountSource, type Consumer, consumerId, consumerOf, isConsumer } from '../config/account-source.ts';
import { accountsIn } from '../config/consumers.ts';
import type { Account, Config } from '../config/schema.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';
import type { ApiKey } from './keys.ts';

/** The accounts by which requests are counted, and which keys may reach them. */
export interface Accounts {
  /** The account of the config. 404 if it is unknown to the key's application, 403 if it is outside the key's scope. */
  access(id: string, key: ApiKey): Account | Refusal;
  /** The account of a request that has to name none; undefined if it has to. */
  ofConsumer(source: AccountSource | undefined, key: ApiKey, request: IncomingMessage): Account | Refusal | undefined;
  /** Undefined if no request can count for it. For operators, who may see the accounts of every application. */
  find(id: string): Account | undefined;
  /** All accounts except those of addresses. */
  readonly all: readonly Account[];
}

/** @param clientIp finds the address of a request's client */
export function createAccounts(
  config: Pick<Config, 'accounts' | 'keys' | 'routes' | 'clientAddress'>,
  clientIp: ClientIp,
): Accounts {
  const { accounts, routes, clientAddress } = config;
  const all = accountsIn(config);
  const byId = new Map(all.map((account) => [account.id, account]));
  // Requests name only these, so that no client can name the account of a key, an application or an address.
  const named = new Map(accounts.map((account) => [account.id, account]));
  const hasAddresses = routes.some(({ account }) => account === 'address');
  const nameOf = createClientIp({ ipv6Prefix: clientAddress.ipv6Prefix, validate: false });
  return {
    all,
    find(id) {
      const { consumer, name = '' } = consumerOf(id) ?? {};
      if (consumer !== 'address') return byId.get(id);
      // Any address of a block of IPv6 names the block.
      const address = hasAddresses ? nameOf(name.split('/', 1)[0], {}) : undefined;
      return address === undefined ? undefined : accountOfAddress(address);
    },
    ofConsumer(source, key, request) {
      if (!isConsumer(source?.place)) return undefined;
      switch (source.place satisfies Consumer) {
        case 'key':
          return byId.get(consumerId('key', key.name));
        case 'application':
          return byId.get(consumerId('application', key.application));
        case 'address': {
          const address = clientIp(request.socket.remoteAddress, request.headers);
          // Only a connection that is closed has none, so its client never gets this answer.
          return address === undefined ? NO_ADDRESS : accountOfAddress(address);
        }
      }
    },
    access(id, key) {
      const account = named.get(id);
      // Another application's account gets the same answer as an unknown one, so that a caller cannot find out that it
      // exists.
      if (account === undefined || account.application !== key.application) {
        return refuse(404, 'errors/invalid_resource_identifier', 'The application has no such account.');
      }
      if (key.role === 'scoped' && account.scope !== key.scope) {
        return refuse(403, 'errors/resource_access_restricted', "The account is outside the API key's scope.");
      }
      return account;
    },
  };
}

const NO_ADDRESS = refuse(400, 'errors/malformed_request', 'The connection has no address.');

/** Clients of any application may share an address. */
export function accountOfAddress(address: string): Account {
  return { id: consumerId('address', address), application: '', scope: null };
}
