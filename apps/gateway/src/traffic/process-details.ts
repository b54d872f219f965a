import type { ShadowCounts } from 'headgate/shadow';
import { z } from 'zod';
import { RANKINGS, type Ranking, type TopAccount, type TopList } from './top-accounts.ts';

/** Details that a process reports to the others with the same store. */
export interface ProcessDetails {
  readonly version: string;
  readonly host: string;
  readonly startedAtMs: number;
  readonly state: 'serving' | 'draining';
  readonly breaker: 'closed' | 'open' | 'half-open';
  /** Decisions per second; undefined without an Admin API, because such a process counts nothing. */
  readonly perSecond: number | undefined;
  /** Its candidate for other limits, and the figures of it; undefined without one. */
  readonly shadow: SaidShadow | undefined;
  /** The accounts at its top; undefined as well. */
  readonly top: Readonly<Record<Ranking, TopList>> | undefined;
}

/** Figures of a candidate. Only figures of processes with the same candidate can be added. */
export interface SaidShadow {
  readonly id: string;
  readonly total: ShadowCounts;
}

/** Largest text of a process's details. */
const MAX_BYTES = 8_192;
/** Most accounts of each list. */
export const TOP = 20;
/** Most characters of a name. */
const MAX_NAME = 255;

type Row = z.infer<typeof row>;
type SaidTop = NonNullable<z.infer<typeof said>['top']>;

const count = z.int().min(0);
const window = z.tuple([z.enum(['route', 'all-methods']), count, count, count, count]);
/** Account, count, error, place of the route in `routes`, and the fullest window. */
const row = z.tuple([z.string(), count, count, count, window.nullable()]);
/**
 * `lastMinute`: the figure of each row. `units`: the unit of each window, '' for requests. They are not a part of a row, so
 * that an earlier version can read the rows.
 */
const list = z.object({
  ...{ exact: z.boolean(), since: count, unlisted: count },
  rows: z.array(row).max(TOP),
  lastMinute: z.array(count).max(TOP).default([]),
  units: z.array(z.string().max(32)).max(TOP).default([]),
});
/** The text of a process's details. A later version of headgate may add properties, so unknown ones are ignored. */
const said = z.object({
  version: z.string().max(MAX_NAME),
  host: z.string().max(MAX_NAME),
  startedAt: count.max(8.64e15),
  state: z.enum(['serving', 'draining']),
  breaker: z.enum(['closed', 'open', 'half-open']),
  perSecond: z.number().nullable(),
  shadow: z
    .object({
      id: z.string().max(MAX_NAME),
      total: z.object({
        both: count,
        none: count,
        onlyCandidate: count,
        onlyCurrent: count,
        dropped: count,
        failed: count,
      }),
    })
    .optional(),
  top: z
    .object({ routes: z.array(z.string()), rejected: list, near: list, accepted: list })
    .refine(({ routes, ...lists }) =>
      Object.values(lists).every(({ rows }) => rows.every(([, , , route]) => routes[route] !== undefined)),
    )
    .nullable(),
});

/** Returns the text of these details, with as many accounts of each list as there is room for. */
export function writeDetails({ startedAtMs, perSecond, top, ...rest }: ProcessDetails): string {
  const details: z.input<typeof said> = { ...rest, startedAt: startedAtMs, perSecond: perSecond ?? null, top: null };
  return JSON.stringify(top === undefined ? details : { ...details, top: saidTop(top, MAX_BYTES - bytesOf(details)) });
}

/** As much of the lists as there is room for. First the first of each, then the second: the first ones matter most. */
function saidTop(top: Readonly<Record<Ranking, TopList>>, bytes: number): SaidTop {
  const listOf = ({ exact, sinceMs, unlisted }: TopList) => ({
    ...{ exact, since: sinceMs, unlisted },
    rows: [] as Row[],
    lastMinute: [] as number[],
    units: [] as string[],
  });
  const lists = { rejected: listOf(top.rejected), near: listOf(top.near), accepted: listOf(top.accepted) };
  const routes: string[] = [];
  // The number of a list can become longer once it is cut.
  let room = bytes - bytesOf({ routes, ...lists }) - RANKINGS.length * String(Number.MAX_SAFE_INTEGER).length;
  const isCut = new Set<Ranking>();
  const add = (by: Ranking, account: TopAccount): void => {
    const known = routes.indexOf(account.route);
    const added = rowOf(account, known === -1 ? routes.length : known);
    const { lastMinute, tightest: { unit = '' } = {} } = account;
    const beside = bytesOf(lastMinute) + bytesOf(unit) + 3;
    const needed = bytesOf(added) + beside + (known === -1 ? bytesOf(account.route) + 1 : 0);
    if (needed > room) {
      isCut.add(by);
      lists[by].unlisted = Math.max(lists[by].unlisted, account.count);
      return;
    }
    room -= needed;
    if (known === -1) routes.push(account.route);
    lists[by].rows.push(added);
    lists[by].lastMinute.push(lastMinute);
    lists[by].units.push(unit);
  };
  for (let rank = 0; rank < TOP; rank++) {
    for (const by of RANKINGS) {
      const account = top[by].accounts[rank];
      if (account !== undefined && !isCut.has(by)) add(by, account);
    }
  }
  return { routes, ...lists };
}

/** Reads another process's details. They are untrusted: undefined if the text is not valid. */
export function readDetails(text: string): ProcessDetails | undefined {
  if (text.length > MAX_BYTES) return undefined;
  const { data } = said.safeParse(parse(text));
  if (data === undefined) return undefined;
  const { startedAt, perSecond, shadow, top, ...rest } = data;
  return {
    ...rest,
    startedAtMs: startedAt,
    perSecond: perSecond ?? undefined,
    shadow,
    top: top === null ? undefined : topOf(top),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function topOf({ routes, ...lists }: SaidTop): Record<Ranking, TopList> {
  const listOf = ({ exact, since, unlisted, rows, lastMinute, units }: z.infer<typeof list>): TopList => ({
    ...{ exact, sinceMs: since, unlisted },
    accounts: rows.map(([account, count, error, route, tightest], i) => ({
      ...{ account, count, error, lastMinute: lastMinute[i] ?? 0, route: routes[route] as string },
      tightest: tightest === null ? undefined : windowOf(tightest, units[i]),
    })),
  });
  return { rejected: listOf(lists.rejected), near: listOf(lists.near), accepted: listOf(lists.accepted) };
}

function rowOf({ account, count, error, tightest }: TopAccount, route: number): Row {
  if (tightest === undefined) return [account, count, error, route, null];
  const { limit, max, remaining, durationMs, resetMs } = tightest;
  return [account, count, error, route, [limit, max, remaining, durationMs, resetMs]];
}

function windowOf(
  [limit, max, remaining, durationMs, resetMs]: z.infer<typeof window>,
  unit = '',
): NonNullable<TopAccount['tightest']> {
  const state = { limit, max, remaining, durationMs, resetMs };
  return unit === '' ? state : { ...state, unit };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
