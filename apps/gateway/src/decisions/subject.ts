import { createClientIp } from 'headgate/client-ip';
import type { Groups } from 'headgate/limits';
import { z } from 'zod';
import { type Accounts, accountOfAddress } from '../admission/accounts.ts';
import type { ApiKey } from '../admission/keys.ts';
import { named } from '../api/schemas.ts';
import { isConsumer } from '../config/account-source.ts';
import { groupsOf } from '../config/groups.ts';
import type { ChooseLane } from '../config/lanes.ts';
import { type Route, routesOf } from '../config/routes.ts';
import type { Account, Config } from '../config/schema.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { isRefusal, type Refusal, refuse } from '../exchange/refusal.ts';
import { invalid } from './operation.ts';

/** Longest text of an address. */
const MAX_ADDRESS = 64;

/** Properties of a body that name what is decided about. */
export const subject = {
  route: named('A route of the config, as it is written there: `POST /api/v1/emails`'),
  account: named(
    'The account, if the route takes it from the request. It must be one that the key may reach',
  ).optional(),
  address: z
    .string()
    .max(MAX_ADDRESS)
    .optional()
    .describe(
      'The address of the client, if the route counts by it. With `perAddress` of the config it is limited there, too',
    ),
  lane: named(
    'A lane of `limits.lanes`. If the route or the key has a lane too, the smallest share applies',
  ).optional(),
};

/** Those properties. */
export interface NamedSubject {
  readonly lane?: string | undefined;
  readonly route: string;
  readonly account?: string | undefined;
  readonly address?: string | undefined;
}

/** A subject of the config. */
export interface KnownSubject {
  readonly route: Route;
  /** Undefined if the route is not limited. */
  readonly account: Account | undefined;
  /** The address of the client in its usual form, if it is given. */
  readonly address: string | undefined;
  /** Undefined without one. */
  readonly lane: string | undefined;
  /** An id by name; undefined without any. */
  readonly groups: Groups | undefined;
}

/** Finds what a body names, or refuses it. */
export type FindSubject = (given: NamedSubject, key: ApiKey, exchange: Exchange) => KnownSubject | Refusal;

/** Creates the function that finds the route and the account of a body, by the rules of requests that are forwarded. */
export function createSubjects(
  config: Pick<Config, 'routes' | 'idempotency' | 'clientAddress' | 'limits'>,
  accounts: Accounts,
  chooseLane: ChooseLane,
): FindSubject {
  const routes = new Map(routesOf(config).map((route) => [route.name, route]));
  const nameOf = createClientIp({ ipv6Prefix: config.clientAddress.ipv6Prefix, validate: false });
  const accountOf = (
    route: Route,
    given: NamedSubject,
    address: string | undefined,
    key: ApiKey,
    exchange: Exchange,
  ) => {
    const { source } = route;
    const isNamed = source !== undefined && !isConsumer(source.place);
    if (isNamed) {
      return given.account === undefined
        ? invalid('account', 'is missing: the route takes it from the request')
        : accounts.access(given.account, key);
    }
    if (given.account !== undefined)
      return invalid(
        'account',
        `must not be given: the route ${source ? `counts by ${source.place}` : 'is not limited'}`,
      );
    if (source?.place !== 'address') return accounts.ofConsumer(source, key, exchange.request);
    return address === undefined ? invalid('address', 'is missing: the route counts by it') : accountOfAddress(address);
  };
  return (given, key, exchange) => {
    const route = routes.get(given.route);
    if (route === undefined) return NO_ROUTE;
    const address = given.address === undefined ? undefined : nameOf(given.address, {});
    if (given.address !== undefined && address === undefined)
      return invalid('address', 'must be an address, such as "192.0.2.1"');
    const account = accountOf(route, given, address, key, exchange);
    if (isRefusal(account)) return account;
    if (given.lane !== undefined && !Object.hasOwn(config.limits.lanes, given.lane))
      return invalid('lane', 'limits.lanes of the config has no such lane');
    const lane = chooseLane(given.lane, route.lane, key.lane);
    return { route, account, address, lane, groups: groupsOf(route, key, account) };
  };
}

const NO_ROUTE = refuse(404, 'errors/resource_not_found', 'The config has no such route.');
