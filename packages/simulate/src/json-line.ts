import type { Cost } from 'headgate';
import { checkOptions } from 'headgate/internal';
import { clfTime, targetOf } from './combined-line.ts';
import { getOrCreate } from './get-or-create.ts';
import { groupsIn, isCost, readObject } from './headgate-line.ts';
import type { LineParser, Names } from './line.ts';
import { type RouteFinder, textIn } from './request-route.ts';
import type { SkipReason } from './trace.ts';

/** The fields of a JSON line that are read. A nested field is written with dots, such as `http.method`. */
export interface FieldMap {
  /**
   * The time: ISO 8601, seconds or milliseconds since 1970, or as in the combined format.
   * @default 'time'
   */
  readonly at?: string | undefined;
  /** @default 'method' */
  readonly method?: string | undefined;
  /**
   * The path, with its query.
   * @default 'path'
   */
  readonly path?: string | undefined;
  /** Method and path in one, such as `GET /chats HTTP/1.1`, in place of the two. */
  readonly request?: string | undefined;
  /** The query, if `path` does not contain it. */
  readonly query?: string | undefined;
  /** The account, if each line names it; `account` of the trace and of its routes is not read then. */
  readonly account?: string | undefined;
  /** The name of the route, if each line names it; method and path are not read then. */
  readonly route?: string | undefined;
  /** Address of the client, for `remote_addr`. */
  readonly remote_addr?: string | undefined;
  /** Name of the client, for `remote_user`. */
  readonly remote_user?: string | undefined;
  readonly provider?: string | undefined;
  readonly plan?: string | undefined;
  readonly lane?: string | undefined;
  /** An object of ids by the names of groups, such as `{"customer": "cus_7"}`. */
  readonly groups?: string | undefined;
  readonly cost?: string | undefined;
  /** What the request costs in a unit, such as `cost.tokens` (S33). A line without such a number costs nothing in it. */
  readonly [cost: `cost.${string}`]: string | undefined;
}

/** What `--map` may name. */
export const FIELDS = [
  'at',
  'method',
  'path',
  'request',
  'query',
  'account',
  'route',
  'remote_addr',
  'remote_user',
  'provider',
  'plan',
  'lane',
  'groups',
  'cost',
] as const;

/** Begins what `--map` names for the cost in a unit. */
const OF_UNIT = 'cost.';
/** No Date is later. */
const LAST_MS = 8_640_000_000_000_000;
/** Numbers below are seconds: the year 5138 begins with this number of them. */
const FIRST_MS = 100_000_000_000;

/**
 * Reads lines with one object each.
 * @throws OptionError
 */
export function jsonParser(map: FieldMap, find: RouteFinder, names: Names): LineParser {
  const units = Object.keys(map).filter((name) => name.startsWith(OF_UNIT)) as `cost.${string}`[];
  checkOptions(map, [...FIELDS, ...units], 'map');
  const { at = 'time' } = map;
  const read = fieldReader();
  const target = targetReader(map, read);
  const nameIn = (line: object, field: string | undefined): string | undefined => {
    const text = textIn(read(line, field));
    return text === undefined ? undefined : names.get(text);
  };
  const subjectOf = (
    line: Readonly<Record<string, unknown>>,
  ): readonly [route: string, account: string] | SkipReason => {
    const named = { route: nameIn(line, map.route), account: nameIn(line, map.account) };
    const found = named.route === undefined || map.account === undefined ? target(line, find) : undefined;
    if (found === 'unreadable' && named.route === undefined) return found;
    const matched = typeof found === 'string' ? undefined : found;
    const route = named.route ?? matched?.route;
    if (route === undefined) return 'no_route';
    const account = map.account === undefined ? matched?.account : named.account;
    return account === undefined ? 'no_account' : [route, names.get(account)];
  };
  const costsIn = (line: object, requests = 1): Cost => {
    const named = units.map((name) => [name.slice(OF_UNIT.length), read(line, map[name])] as const);
    return { requests, ...Object.fromEntries(named.filter(([, cost]) => isCost(cost))) };
  };
  let lines = 0;
  return ({ text }) => {
    lines++;
    const line = readObject(text);
    if (line === undefined) return undefined;
    const time = timeIn(read(line, at));
    if (time === undefined) return 'unreadable';
    const subject = subjectOf(line);
    if (typeof subject === 'string') return subject;
    const requests = read(line, map.cost);
    const cost = isCost(requests) ? requests : undefined;
    return {
      account: subject[1],
      route: subject[0],
      at: time,
      order: lines,
      provider: nameIn(line, map.provider),
      plan: nameIn(line, map.plan),
      lane: nameIn(line, map.lane),
      groups: groupsIn(read(line, map.groups)),
      cost: units.length === 0 ? cost : costsIn(line, cost),
      logged: undefined,
      id: undefined,
      settles: undefined,
      isExact: true,
    };
  };
}

type ReadField = (line: object, field: string | undefined) => unknown;

/** Reads a field by its name, or else by the names of the objects around it, with dots between. */
function fieldReader(): ReadField {
  const paths = new Map<string, readonly string[]>();
  return (line, field) => {
    if (field === undefined) return undefined;
    const direct = (line as Record<string, unknown>)[field];
    if (direct !== undefined || !field.includes('.')) return direct;
    let value: unknown = line;
    for (const step of getOrCreate(paths, field, () => field.split('.')))
      value = (value as Record<string, unknown> | null | undefined)?.[step];
    return value;
  };
}

/** Finds the route of a line by its method and path. */
function targetReader(map: FieldMap, read: ReadField) {
  const { method = 'method', path = 'path', remote_addr = 'remote_addr', remote_user = 'remote_user' } = map;
  return (line: Readonly<Record<string, unknown>>, find: RouteFinder): ReturnType<RouteFinder> | 'unreadable' => {
    const request = map.request === undefined ? undefined : targetOf(textIn(read(line, map.request)) ?? '');
    const target = request?.target ?? textIn(read(line, path));
    const verb = request?.method ?? textIn(read(line, method));
    if (verb === undefined || target === undefined) return 'unreadable';
    const query = textIn(read(line, map.query));
    return find(verb.toUpperCase(), query === undefined ? target : `${target}?${query}`, {
      remoteAddress: textIn(read(line, remote_addr)),
      remoteUser: textIn(read(line, remote_user)),
      line,
    });
  };
}

function timeIn(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  if (typeof number === 'number') {
    const ms = Math.floor(number < FIRST_MS ? number * 1_000 : number);
    return ms >= 0 && ms <= LAST_MS ? ms : undefined;
  }
  if (typeof value !== 'string') return undefined;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? clfTime(value) : ms;
}
