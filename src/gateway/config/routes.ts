import { METHODS } from 'node:http';
import { describe } from '../../core/errors.ts';
import { type ClaimSettings, settingsOf } from '../../idempotency/settings.ts';
import { type AccountSource, parseAccountSource } from './account-source.ts';
import type { Config } from './schema.ts';

/** A route of the config. */
export interface Route {
  /** As written in the config, such as `GET /api/v1/chats/{chat_id}`. Limits, metrics and the log use this name. */
  readonly name: string;
  /** Where the account is given; undefined if the route is not limited. */
  readonly source: AccountSource | undefined;
  /** Undefined if the route is not idempotent. */
  readonly idempotent: RouteIdempotency | undefined;
  /** Name of the upstream that its requests go to; undefined if it has none of its own. */
  readonly upstream?: string | undefined;
}

/** The settings of one route: its own, then those of the config's `idempotency`. */
export interface RouteIdempotency {
  readonly settings: ClaimSettings;
  /** How long an upstream answer is still taken after the client got 504, in milliseconds. */
  readonly lateAnswerMs: number;
  /** Whether a request without a key is refused. */
  readonly required: boolean;
}

/** Method and path of a route, taken apart. */
export interface RouteTemplate {
  readonly method: string;
  readonly segments: readonly Segment[];
}

/** A literal, the name of a parameter, or the wildcard at the end of a route. */
export type Segment = { readonly literal: string } | { readonly parameter: string } | { readonly wildcard: true };

const WILDCARD = '*';
const MISPLACED_WILDCARD = 'a wildcard is the whole last segment, as in "GET /files/*"';
const LITERAL = /^[A-Za-z0-9._~!$&'()+,;=@:-]*$/;
const PARAMETER = /^\{([A-Za-z][A-Za-z0-9_-]*)\}$/;
const DOTS = /^\.\.?(;.*)?$/;

/** The routes of a checked config. */
export function routesOf({ routes, idempotency }: Pick<Config, 'routes' | 'idempotency'>): Route[] {
  return routes.map(({ route, account, idempotent = false, upstream }) => {
    const own = typeof idempotent === 'boolean' ? {} : idempotent;
    const { required = false, lateAnswerMs = idempotency.lateAnswerMs, ...given } = own;
    const settings = settingsOf(given, settingsIn(idempotency));
    return {
      name: route,
      source: account === undefined ? undefined : parseAccountSource(account),
      idempotent: idempotent === false ? undefined : { settings, lateAnswerMs, required },
      upstream,
    };
  });
}

/** The library's settings in the config's `idempotency`, without the keys that only the process has. */
export function settingsIn({ lateAnswerMs: _, secret: __, ...settings }: Config['idempotency']): ClaimSettings {
  return settings;
}

/** Reads a route, or returns what is wrong with it. */
export function parseRoute(text: string): RouteTemplate | { readonly reason: string } {
  const match = /^([A-Z]+) (\/.*)$/s.exec(text);
  if (match === null) {
    return { reason: `must be a method and a path, such as "POST /api/v1/emails", got ${describe(text)}` };
  }
  const [, method = '', path = ''] = match;
  if (!METHODS.includes(method) || method === 'CONNECT') return { reason: `${method} is not a method for a route` };
  const segments = path.slice(1).split('/').map(parseSegment);
  const reason = segments.find((segment) => typeof segment === 'string') ?? flaw(segments as Segment[]);
  return reason === undefined ? { method, segments: segments as Segment[] } : { reason };
}

/** Equal for two routes that match the same requests. */
export function shapeOf({ method, segments }: RouteTemplate): string {
  return `${method} ${segments.map(shapeOfSegment).join('/')}`;
}

function shapeOfSegment(segment: Segment): string {
  if ('literal' in segment) return segment.literal;
  // No literal can have these characters.
  return 'parameter' in segment ? '{}' : WILDCARD;
}

/** Names of the parameters, in order. */
export function parametersOf(segments: readonly Segment[]): string[] {
  return segments.flatMap((segment) => ('parameter' in segment ? [segment.parameter] : []));
}

function parseSegment(text: string): Segment | string {
  const parameter = PARAMETER.exec(text)?.[1];
  if (parameter !== undefined) return { parameter };
  if (text === WILDCARD) return { wildcard: true };
  if (DOTS.test(text)) return 'a dot segment never matches: such requests are refused';
  if (/[{}]/.test(text)) return `${describe(text)}: a parameter is a whole segment, such as {chat_id}`;
  if (text.includes(WILDCARD)) return MISPLACED_WILDCARD;
  if (!LITERAL.test(text)) return `${describe(text)} has a character that a path cannot have unencoded`;
  return { literal: text };
}

function flaw(segments: readonly Segment[]): string | undefined {
  const empty = segments.findIndex((segment) => 'literal' in segment && segment.literal === '');
  if (empty !== -1 && empty !== segments.length - 1) return 'has an empty segment (two slashes)';
  if (segments.slice(0, -1).some((segment) => 'wildcard' in segment)) return MISPLACED_WILDCARD;
  const parameters = parametersOf(segments);
  const twice = parameters.find((parameter, index) => parameters.indexOf(parameter) !== index);
  return twice === undefined ? undefined : `has the parameter {${twice}} twice`;
}
