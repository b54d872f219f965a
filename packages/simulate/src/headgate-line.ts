import type { Cost } from 'headgate';
import type { Groups } from 'headgate/limits';
import type { LineParser, Names, ParsedLine } from './line.ts';
import type { SkipReason } from './trace.ts';

/** The fields of a line of the gateway's log that are read here. In any other line they may contain anything. */
interface LoggedLine {
  readonly msg?: unknown;
  readonly time?: unknown;
  readonly ms?: unknown;
  readonly req_id?: unknown;
  readonly route?: unknown;
  readonly account?: unknown;
  readonly provider?: unknown;
  readonly plan?: unknown;
  readonly lane?: unknown;
  readonly groups?: unknown;
  readonly cost?: unknown;
  readonly at?: unknown;
  readonly order?: unknown;
  readonly decision?: unknown;
  readonly degraded?: unknown;
  readonly blocked?: unknown;
  readonly in_flight?: unknown;
}

/** As many as one request may name. */
const MAX_GROUPS = 4;
/** Lines after which the counters or the limits may differ from those in the log and the config. */
const CHANGES: readonly unknown[] = ['limits adjusted', 'adjustments read', 'windows reset', 'config reloaded'];

/** No Date is later. */
const LAST_MS = 8_640_000_000_000_000;

/** Reads lines of the gateway's own log. */
export function headgateParser(names: Names): LineParser {
  let number = 0;
  return (lines) => {
    number++;
    const line = readObject(lines.text);
    // Each line of the log contains a level and a message.
    if (line === undefined || typeof line.msg !== 'string') return undefined;
    if (line.msg === 'refund') return settlement(line);
    if (line.msg !== 'request' && line.msg !== 'decision') return CHANGES.includes(line.msg) ? 'change' : 'other';
    return request(line, names, number);
  };
}

function request(line: LoggedLine, names: Names, number: number): ParsedLine | undefined {
  const { route, account, decision, at, order, cost } = line;
  if (typeof decision !== 'string') return undefined;
  const reason = skipReason(line);
  if (reason !== undefined) return reason;
  if (typeof route !== 'string') return 'no_route';
  if (typeof account !== 'string') return 'no_account';
  const isExact = Number.isSafeInteger(at) && Number.isSafeInteger(order);
  const decidedAt = isExact ? (at as number) : Date.parse(String(line.time)) - Number(line.ms ?? 0);
  if (!(decidedAt >= 0 && decidedAt <= LAST_MS)) return 'unreadable';
  return {
    account: names.get(account),
    route: names.get(route),
    at: Math.floor(decidedAt),
    order: isExact ? (order as number) : number,
    provider: typeof line.provider === 'string' ? names.get(line.provider) : undefined,
    plan: typeof line.plan === 'string' ? names.get(line.plan) : undefined,
    lane: typeof line.lane === 'string' ? names.get(line.lane) : undefined,
    groups: groupsIn(line.groups),
    cost: costIn(cost, 1),
    logged: decision as 'accepted' | 'rejected',
    id: typeof line.req_id === 'string' ? line.req_id : undefined,
    settles: undefined,
    isExact,
  };
}

/** Why no limit of the config decided about the request; undefined if one did. */
function skipReason({ msg, at, decision, degraded, blocked, in_flight }: LoggedLine): SkipReason | undefined {
  if (decision === 'replayed') return 'replayed';
  if (degraded === true || decision === 'degraded') return 'degraded';
  if (blocked === true) return 'blocked';
  if (in_flight === true) return 'in_flight';
  if (decision === 'unlimited') return 'no_account';
  if (decision !== 'accepted' && decision !== 'rejected') return 'refused';
  // A separate line says when the limits decided about a long request.
  return msg === 'request' && at === null ? 'other' : undefined;
}

function settlement({ req_id, at, order, cost = 0 }: LoggedLine): ParsedLine {
  if (typeof req_id !== 'string' || !Number.isSafeInteger(at) || !Number.isSafeInteger(order)) return 'unreadable';
  return {
    account: '',
    route: '',
    at: at as number,
    order: order as number,
    provider: undefined,
    plan: undefined,
    lane: undefined,
    groups: undefined,
    cost: costIn(cost, 0) ?? 0,
    logged: undefined,
    id: undefined,
    settles: req_id,
    isExact: true,
  };
}

/** A cost that a request can have (S11), or one per unit (S33); undefined for anything else. */
function costIn(cost: unknown, least: 0 | 1): Cost | undefined {
  if (typeof cost !== 'object' || cost === null) return isCost(cost, least) ? cost : undefined;
  const costs = Object.entries(cost).filter(([, value]) => isCost(value, least));
  return costs.length === 0 ? undefined : Object.fromEntries(costs);
}

export function isCost(cost: unknown, least: 0 | 1 = 1): cost is number {
  return Number.isSafeInteger(cost) && (cost as number) >= least;
}

/** Undefined if the text is not an object in JSON. */
export function readObject(text: string): Record<string, unknown> | undefined {
  // A text that cannot be an object is not parsed, because an error costs more than an object.
  if (!/^\s*\{/.test(text) || !/\}\s*$/.test(text.slice(-8))) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Groups of a line; undefined without any, or if they are not ids by name. */
export function groupsIn(value: unknown): Groups | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const ids = Object.entries(value);
  return ids.length > 0 && ids.length <= MAX_GROUPS && ids.every(([, id]) => typeof id === 'string')
    ? (value as Groups)
    : undefined;
}
