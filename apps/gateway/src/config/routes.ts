import { METHODS } from 'node:http';
import type { Cost } from 'headgate';
import type { ClaimSettings } from 'headgate/idempotency';
import { settingsOf } from 'headgate/internal';
import type { Groups } from 'headgate/limits';
import { parseTemplate, type RouteTemplate } from 'headgate-simulate/routes';
import { type AccountSource, parseAccountSource } from './account-source.ts';
import type { Config } from './schema.ts';

/** A route of the config. */
export interface Route {
  /** As written in the config, such as `GET /api/v1/chats/{chat_id}`. Limits, metrics and the log use this name. */
  readonly name: string;
  /** By what its requests are counted; undefined if the route is not limited. */
  readonly source: AccountSource | undefined;
  /** Whether its requests need no API key. */
  readonly isPublic: boolean;
  /** Undefined if the route is not idempotent. */
  readonly idempotent: RouteIdempotency | undefined;
  /** Whether the config says that it is not idempotent. */
  readonly ignoresKeys?: boolean | undefined;
  /** What a request costs; undefined for 1. */
  readonly cost?: Cost | undefined;
  /** The lane of its requests. */
  readonly lane?: string | undefined;
  /** Their groups: an id by name. */
  readonly groups?: Groups | undefined;
  /** Name of the upstream for its requests; undefined if the route does not set one. */
  readonly upstream?: string | undefined;
}

/** The settings of one route: its own, then the settings in the config's `idempotency`. */
export interface RouteIdempotency {
  readonly settings: ClaimSettings;
  /** How long an upstream answer is still taken after the client got 504, in milliseconds. */
  readonly lateAnswerMs: number;
  /** Whether a request without a key is refused. */
  readonly required: boolean;
  /** Header fields that are part of the comparison of two requests with the same key. */
  readonly compares: readonly string[];
}

/** The routes of a checked config. */
export function routesOf({ routes, idempotency }: Pick<Config, 'routes' | 'idempotency'>): Route[] {
  return routes.map(({ route, account, public: isPublic, idempotent, cost, lane, groups, upstream }) => {
    const own = typeof idempotent !== 'object' ? {} : idempotent;
    const {
      required = false,
      lateAnswerMs = idempotency.lateAnswerMs,
      compares = idempotency.compares,
      ...given
    } = own;
    const settings = settingsOf(given, settingsIn(idempotency));
    return {
      name: route,
      source: parseAccountSource(account),
      isPublic,
      idempotent: idempotent ? { settings, lateAnswerMs, required, compares } : undefined,
      ignoresKeys: idempotent === false,
      cost,
      lane,
      groups,
      upstream,
    };
  });
}

/** The library's settings in the config's `idempotency`, without the keys that only the process uses. */
export function settingsIn({
  lateAnswerMs: _,
  secret: __,
  compares: ___,
  ...settings
}: Config['idempotency']): ClaimSettings {
  return settings;
}

/** Reads a route, or returns the reason why it is invalid. */
export function parseRoute(text: string): RouteTemplate | { readonly reason: string } {
  const template = parseTemplate(text);
  const method = /^[A-Z]+(?= \/)/.exec(text)?.[0];
  if (method === undefined || (METHODS.includes(method) && method !== 'CONNECT')) return template;
  return { reason: `${method} is not a method for a route` };
}
