import { OptionError } from 'headgate';
import { parseTemplate } from './route-template.ts';
import { createRouteTree } from './route-tree.ts';

/** The part of an access log's request that names its account: `field` is a field of a JSON line. */
export type AccountPlace = `path.${string}` | `query.${string}` | `field.${string}` | 'remote_addr' | 'remote_user';

/** A route, as in the config of a gateway: `GET /chats/{chat_id}`. */
export interface TraceRoute {
  readonly route: string;
  /**
   * Where its requests name their account. A gateway's `header.NAME` and `body.NAME` are not in an access log.
   * @default `account` of the trace
   */
  readonly account?: string | undefined;
}

/** The known parts of a request besides its method and path. */
export interface RequestFields {
  readonly remoteAddress: string | undefined;
  readonly remoteUser: string | undefined;
  /** The whole line, if it is an object. */
  readonly line: Readonly<Record<string, unknown>> | undefined;
}

/** Finds route and account of a request; undefined without a route. */
export type RouteFinder = (method: string, target: string, fields: RequestFields) => FoundRoute | undefined;

interface FoundRoute {
  readonly route: string;
  readonly account: string | undefined;
}

interface StoredRoute {
  readonly name: string;
  readonly account:
    | ((segments: readonly string[], query: string, fields: RequestFields) => string | undefined)
    | undefined;
}

const ADVICE =
  'is not in an access log: use the log of the gateway with "log": { "account": true }, name the account with account (--account), or write JSON lines that have it';

/** @throws OptionError with the place of the route */
export function routeFinder(
  routes: readonly (string | TraceRoute)[],
  account: string | undefined,
  isJson: boolean,
): RouteFinder {
  const tree = createRouteTree<StoredRoute>();
  for (const [i, given] of routes.entries()) {
    const { route, account: own } = typeof given === 'string' ? { route: given } : given;
    const template = parseTemplate(route);
    if ('reason' in template) throw new OptionError(`routes[${i}]`, route, template.reason);
    const parameters = new Map(
      template.segments.flatMap((segment, at) => ('parameter' in segment ? [[segment.parameter, at] as const] : [])),
    );
    const place = account ?? own;
    const name = `routes[${i}].account`;
    const source =
      place === undefined
        ? undefined
        : accountReader(place, parameters, account === undefined ? name : 'account', isJson);
    tree.add(template, { name: route, account: source });
  }
  return (method, target, fields) => {
    const mark = target.indexOf('?');
    const path = mark === -1 ? target : target.slice(0, mark);
    const segments = path.startsWith('/') ? segmentsOf(path) : undefined;
    const found = segments && tree.find(method, segments);
    if (found === undefined) return undefined;
    const query = mark === -1 ? '' : target.slice(mark + 1);
    return { route: found.name, account: found.account?.(segments as string[], query, fields) || undefined };
  };
}

function accountReader(
  place: string,
  parameters: ReadonlyMap<string, number>,
  option: string,
  isJson: boolean,
): StoredRoute['account'] {
  if (place === 'remote_addr') return (_segments, _query, { remoteAddress }) => remoteAddress;
  if (place === 'remote_user') return (_segments, _query, { remoteUser }) => remoteUser;
  const dot = place.indexOf('.');
  const [kind, name] = [place.slice(0, dot), place.slice(dot + 1)];
  if (kind === 'query' && name !== '') return (_segments, query) => queryValue(query, name);
  if (kind === 'path' && name !== '') {
    const at = parameters.get(name);
    // Other routes may contain the parameter.
    return at === undefined ? undefined : (segments) => segments[at];
  }
  if (kind === 'field' && name !== '' && isJson) return (_segments, _query, { line }) => textIn(line?.[name]);
  if (kind === 'body' || kind === 'header') throw new OptionError(option, place, ADVICE);
  const fields = isJson ? ', field.NAME' : '';
  throw new OptionError(option, place, `must be path.NAME, query.NAME${fields}, remote_addr or remote_user`);
}

/** Decodes each segment once, as the gateway does; undefined if that fails. */
function segmentsOf(path: string): string[] | undefined {
  const segments = path.slice(1).split('/');
  if (!path.includes('%')) return segments;
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function queryValue(query: string, name: string): string | undefined {
  for (let from = 0; from < query.length; ) {
    const next = query.indexOf('&', from);
    const end = next === -1 ? query.length : next;
    const equals = query.indexOf('=', from);
    if (equals !== -1 && equals < end && decoded(query.slice(from, equals)) === name)
      return decoded(query.slice(equals + 1, end));
    from = end + 1;
  }
  return undefined;
}

function decoded(text: string): string | undefined {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/** A text, or a number as a text. */
export function textIn(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}
