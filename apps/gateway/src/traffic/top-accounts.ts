import type { Decision, WindowStatus } from 'headgate';
import { HeavyHitters, type Hitter } from './heavy-hitters.ts';

/** By what accounts are ranked. `near`: accepted, although a window is at least 80 % full. */
export const RANKINGS = ['rejected', 'near', 'accepted'] as const;
export type Ranking = (typeof RANKINGS)[number];

/** An account that is at the top. */
export interface TopAccount {
  readonly account: string;
  readonly count: number;
  /** How much of `count` may be of other accounts. */
  readonly error: number;
  /** How many of `count` are of the last minute. With very many accounts, a lower bound. */
  readonly lastMinute: number;
  /** The route of its last decision. */
  readonly route: string;
  /** The fullest window of its last decision. */
  readonly tightest: Pick<WindowStatus, 'limit' | 'max' | 'remaining' | 'durationMs' | 'resetMs' | 'unit'> | undefined;
}

/** An account that was seen lately. */
export interface SeenAccount {
  readonly account: string;
  /** Its requests, accepted and rejected. */
  readonly count: number;
  /** The route of its last decision, and when that was, on the store's clock. */
  readonly route: string;
  readonly decidedAt: number;
}

/**
 * Requests of an account per minute: the average since it is counted, or a lower bound if there are very many accounts.
 */
export type AccountRate = Readonly<Record<'accepted' | 'rejected', number>>;

/** The top accounts, those with the most requests of the last minute first, and how exact the list is. */
export interface TopList {
  readonly accounts: readonly TopAccount[];
  readonly exact: boolean;
  /** Upper bound of the count of an account that is not in the list. */
  readonly unlisted: number;
  /** Since when it was counted, in milliseconds since 1970. */
  readonly sinceMs: number;
}

const COUNTERS = 1_024;
/** Two halves take turns, so that an account that was busy an hour ago is not at the top. */
const HALF_MS = 300_000;
const MINUTE_MS = 60_000;
const NEAR = 0.2;

type Half = Readonly<Record<Ranking, HeavyHitters<Decision>>> & { readonly sinceMs: number };

/** Counts accounts in bounded memory: the last five to ten minutes. */
export class TopAccounts {
  #current: Half;
  #before: Half | undefined;

  constructor(nowMs: number) {
    this.#current = createHalf(nowMs);
  }

  add(decision: Decision, nowMs: number): void {
    if (nowMs - this.#current.sinceMs >= HALF_MS) this.#turn(nowMs);
    const { accepted, account } = decision;
    if (!accepted) this.#current.rejected.add(account, decision, nowMs);
    else {
      this.#current.accepted.add(account, decision, nowMs);
      if (isNear(decision)) this.#current.near.add(account, decision, nowMs);
    }
  }

  list(by: Ranking, limit: number, nowMs: number): TopList {
    if (nowMs - this.#current.sinceMs >= HALF_MS) this.#turn(nowMs);
    const halves = this.#halves;
    const merged = new Map<string, Hitter<Decision>>();
    for (const half of halves) {
      for (const each of half[by].list(nowMs)) {
        const known = merged.get(each.name);
        merged.set(each.name, known === undefined ? each : sumOf(known, each));
      }
    }
    const sorted = [...merged.values()].sort(
      (a, b) => b.lastMinute - a.lastMinute || b.count - a.count || (a.name < b.name ? -1 : 1),
    );
    const least = halves.reduce((sum, half) => sum + half[by].least, 0);
    const unlisted = sorted.slice(limit).reduce((most, { count }) => Math.max(most, count), 0);
    return {
      accounts: sorted.slice(0, limit).map(({ name, count, error, lastMinute, note }) => ({
        account: name,
        count,
        error,
        lastMinute,
        route: note.route,
        tightest: tightestOf(note),
      })),
      unlisted: Math.max(least, unlisted),
      exact: halves.every((half) => half[by].isExact),
      sinceMs: (halves.at(-1) as Half).sinceMs,
    };
  }

  /**
   * Every account that is counted, the busiest first. If there are very many, only the accounts with the most requests.
   */
  seen(nowMs: number): SeenAccount[] {
    if (nowMs - this.#current.sinceMs >= HALF_MS) this.#turn(nowMs);
    const merged = new Map<string, SeenAccount>();
    // `near` contains only accounts that `accepted` contains too.
    for (const { rejected, accepted } of this.#halves) {
      for (const { name, count, note } of [...rejected.list(nowMs), ...accepted.list(nowMs)]) {
        const known = merged.get(name);
        const { decidedAt, route } = note;
        const isLast = known === undefined || decidedAt > known.decidedAt;
        merged.set(name, {
          account: name,
          count: count + (known?.count ?? 0),
          route: isLast ? route : known.route,
          decidedAt: isLast ? decidedAt : known.decidedAt,
        });
      }
    }
    return [...merged.values()].sort((a, b) => b.count - a.count);
  }

  rate(account: string, nowMs: number): AccountRate {
    if (nowMs - this.#current.sinceMs >= HALF_MS) this.#turn(nowMs);
    // In the first minute it is the count so far: a few requests in a row are not a rate.
    const minutes = Math.max(1, (nowMs - (this.#halves.at(-1) as Half).sinceMs) / MINUTE_MS);
    const rateOf = (by: keyof AccountRate): number => {
      const counted = this.#halves.flatMap((half) => half[by].get(account, nowMs) ?? []);
      return counted.reduce((sum, { count, error }) => sum + count - error, 0) / minutes;
    };
    return { accepted: rateOf('accepted'), rejected: rateOf('rejected') };
  }

  get #halves(): readonly Half[] {
    return this.#before === undefined ? [this.#current] : [this.#current, this.#before];
  }

  #turn(nowMs: number): void {
    // After a pause of a whole half, no earlier count is recent.
    this.#before = nowMs - this.#current.sinceMs < 2 * HALF_MS ? this.#current : undefined;
    this.#current = createHalf(nowMs);
  }
}

function createHalf(sinceMs: number): Half {
  const create = () => new HeavyHitters<Decision>(COUNTERS);
  return { rejected: create(), near: create(), accepted: create(), sinceMs };
}

/** The same account in two halves, with the note of the first one. */
function sumOf(one: Hitter<Decision>, other: Hitter<Decision>): Hitter<Decision> {
  return {
    ...one,
    count: one.count + other.count,
    error: one.error + other.error,
    lastMinute: one.lastMinute + other.lastMinute,
  };
}

function isNear({ trace }: Decision): boolean {
  for (const { remaining, max } of trace) if (remaining <= max * NEAR) return true;
  return false;
}

/** The window with the least room; for a rejection, the window that rejected. */
export function tightestOf({ trace }: Decision): WindowStatus | undefined {
  let tightest: WindowStatus | undefined;
  for (const window of trace) {
    if (tightest === undefined || window.remaining * tightest.max <= tightest.remaining * window.max) tightest = window;
  }
  return tightest;
}
