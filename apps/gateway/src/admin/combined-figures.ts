import type { LeaseStats } from 'headgate/limits';
import type { ShadowFigures } from 'headgate/shadow';
import { FleetSum, type FleetTop } from '../traffic/fleet-top.ts';
import { COUNTED, type Second } from '../traffic/series.ts';
import type { AccountRate, SeenAccount, TopList } from '../traffic/top-accounts.ts';
import { type MetOrphan, ORPHANS } from '../traffic/traffic.ts';
import type { CandidateFigures, Figure, FigureName, Figures, Load } from './figures.ts';

/** Which workers answered in time. */
export interface CountedWorkers {
  readonly counted: number;
  readonly of: number;
  /** The numbers of the others. */
  readonly missing: number[];
}

/** The figures of each process of the gateway. */
export interface Answers<Figures> {
  /** At least one, except of figures that an answer only shows beside others. */
  readonly each: readonly Figures[];
  /** Undefined if this process is the gateway. */
  readonly workers?: CountedWorkers | undefined;
}

/**
 * Asks every process of the gateway for one of its figures.
 * @throws NoAnswerError
 */
export type AskFigures = <Name extends FigureName>(
  name: Name,
  ...args: Parameters<Figures[Name]>
) => Promise<Answers<Figure<Name>>>;

/** No process answered in time. */
export class NoAnswerError extends Error {
  constructor() {
    super('No worker answered in time.');
    this.name = 'NoAnswerError';
  }
}

/** Asks this process, which is the whole gateway. */
export function askOwn(figures: Figures): AskFigures {
  return async (name, ...args) => ({ each: [(await callFigure(figures, name, args)) as Figure<typeof name>] });
}

/** One of the figures, by its name. */
export function callFigure(figures: Figures, name: FigureName, args: readonly unknown[]): unknown {
  return (figures[name] as (...args: readonly unknown[]) => unknown)(...args);
}

const BREAKERS: readonly Load['breaker'][] = ['closed', 'half-open', 'open'];
const MAX_SHADOW_ACCOUNTS = 1_000;

/** The breaker and the health are the worst of all. */
export function sumOfLoads(loads: readonly Load[]): Load {
  const total = (of: (load: Load) => number): number => loads.reduce((sum, load) => sum + of(load), 0);
  const perSecond = COUNTED.map((name) => [name, total((load) => load.perSecond[name])]);
  return {
    perSecond: Object.fromEntries(perSecond) as Load['perSecond'],
    inFlight: total(({ inFlight }) => inFlight),
    background: total(({ background }) => background),
    orphansMet: total(({ orphansMet }) => orphansMet),
    breaker: BREAKERS.findLast((state) => loads.some(({ breaker }) => breaker === state)) ?? 'closed',
    health: loads.some(({ health }) => health === 'degraded') ? 'degraded' : 'ok',
    leases: sumOfLeases(loads.flatMap(({ leases = [] }) => leases)),
  };
}

function sumOfLeases(all: readonly LeaseStats[]): LeaseStats | undefined {
  const [first, ...others] = all;
  return first && others.reduce<LeaseStats>(sumOfCounts, first);
}

/** @param limit how many accounts the sum lists */
export function sumOfTops(lists: readonly TopList[], limit: number): TopList | FleetTop {
  const [first] = lists;
  if (first !== undefined && lists.length === 1) return first;
  const sum = new FleetSum();
  for (const list of lists) sum.add(list);
  return sum.top(limit);
}

/** Adds the counts of each second. The times of the store are the slowest process's. */
export function sumOfSeconds(lists: readonly (readonly Second[])[]): Second[] {
  const [first = [], ...others] = lists;
  return first.map((second, i) => {
    const all = [second, ...others.flatMap((list) => list[i] ?? [])];
    const counts = COUNTED.map((name) => [name, all.reduce((sum, each) => sum + each[name], 0)]);
    return {
      ...(Object.fromEntries(counts) as Second),
      atMs: second.atMs,
      p50: slowest(all.map(({ p50 }) => p50)),
      p99: slowest(all.map(({ p99 }) => p99)),
    };
  });
}

/** Each orphan once, with its last meeting; the last one first. */
export function allOrphans(lists: readonly (readonly MetOrphan[])[]): MetOrphan[] {
  const latestLast = lists.flat().sort((a, b) => a.atMs - b.atMs);
  const byKey = new Map<string, MetOrphan>();
  for (const orphan of latestLast) {
    const name = JSON.stringify([orphan.scope, orphan.key]);
    byKey.delete(name);
    byKey.set(name, orphan);
  }
  return [...byKey.values()].reverse().slice(0, ORPHANS);
}

/** Each account once; the busiest first. */
export function allSeen(lists: readonly (readonly SeenAccount[])[]): readonly SeenAccount[] {
  const [first] = lists;
  if (first !== undefined && lists.length === 1) return first;
  const byName = new Map<string, SeenAccount>();
  for (const seen of lists.flat()) {
    const known = byName.get(seen.account);
    const last = known === undefined || seen.decidedAt > known.decidedAt ? seen : known;
    byName.set(seen.account, { ...last, count: seen.count + (known?.count ?? 0) });
  }
  return [...byName.values()].sort((a, b) => b.count - a.count);
}

/** The rate of an account that no process knows. */
export const NO_RATE: AccountRate = { accepted: 0, rejected: 0 };

/** The rates of the same accounts. */
export function sumOfRates(lists: readonly (readonly AccountRate[])[]): AccountRate[] {
  const [first = [], ...others] = lists;
  return first.map((rate, i) => {
    const all = [rate, ...others.flatMap((list) => list[i] ?? [])];
    const total = (of: keyof AccountRate): number => all.reduce((sum, each) => sum + each[of], 0);
    return { accepted: total('accepted'), rejected: total('rejected') };
  });
}

/** The sum of those who run the candidate with this id; undefined if none does yet. */
export function sumOfCandidates(
  id: string,
  all: readonly (CandidateFigures | undefined)[],
): CandidateFigures | undefined {
  const same = all.filter((each) => each !== undefined).filter((each) => each.id === id);
  const [first, ...others] = same;
  if (first === undefined || others.length === 0) return first;
  const figures = same.map((each) => each.figures);
  return {
    id,
    sinceMs: Math.min(...same.map(({ sinceMs }) => sinceMs)),
    figures: figures.reduce(sumOfFigures),
  };
}

/** Adds the counts of each name. */
export function sumOfCounts<Name extends string>(
  a: Readonly<Record<Name, number>>,
  b: Readonly<Record<Name, number>>,
): Record<Name, number> {
  const names = Object.keys(a) as Name[];
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as Record<Name, number>;
}

function sumOfFigures(a: ShadowFigures, b: ShadowFigures): ShadowFigures {
  const byRoute = new Map(Object.entries(a.byRoute));
  for (const [route, counts] of Object.entries(b.byRoute)) {
    const known = byRoute.get(route);
    byRoute.set(route, known === undefined ? counts : sumOfCounts(known, counts));
  }
  const accounts = new Map(a.newlyRejected.map((each) => [each.account, each]));
  for (const each of b.newlyRejected)
    accounts.set(each.account, { ...each, rejected: each.rejected + (accounts.get(each.account)?.rejected ?? 0) });
  const sorted = [...accounts.values()].sort((one, other) => other.rejected - one.rejected);
  const left = sorted.slice(MAX_SHADOW_ACCOUNTS).reduce((sum, { rejected }) => sum + rejected, 0);
  return {
    total: sumOfCounts(a.total, b.total),
    byRoute: Object.fromEntries(byRoute),
    newlyRejected: sorted.slice(0, MAX_SHADOW_ACCOUNTS),
    unlisted: a.unlisted + b.unlisted + left,
  };
}

function slowest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
