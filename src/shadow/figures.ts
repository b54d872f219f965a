import { getOrCreate } from '../base/get-or-create.ts';
import type { LimitName } from '../core/limit.ts';

/** Who would have rejected a request. */
export type ShadowOutcome = 'both' | 'none' | 'onlyCandidate' | 'onlyCurrent';

/** How many requests the limits in force and the candidate rejected. */
export interface ShadowCounts extends Readonly<Record<ShadowOutcome, number>> {
  /** Requests that were not checked, because too many checks were under way. */
  readonly dropped: number;
  /** Checks in which the candidate's store failed, or did not answer in time. */
  readonly failed: number;
}

/** An account of which the candidate rejects requests that the limits in force accept. */
export interface NewlyRejectedAccount {
  readonly account: string;
  /** How many requests only the candidate rejected. */
  readonly rejected: number;
  /** Route of the last one. */
  readonly route: string;
  /** Limit that rejected the last one. */
  readonly limit: LimitName;
}

/** Figures of a candidate since it runs in this process. */
export interface ShadowFigures {
  readonly total: ShadowCounts;
  /** The first 1,000 routes. */
  readonly byRoute: Readonly<Record<string, ShadowCounts>>;
  /** The first 1,000 accounts that only the candidate rejects, the most rejected first. */
  readonly newlyRejected: readonly NewlyRejectedAccount[];
  /** Requests of further accounts that only the candidate rejected. */
  readonly unlisted: number;
}

type Counts = { -readonly [Name in keyof ShadowCounts]: number };

const MAX_ROUTES = 1_000;
const MAX_ACCOUNTS = 1_000;

/** Counts checks, in bounded memory. */
export class ShadowTally {
  readonly #total: Counts = noCounts();
  readonly #byRoute = new Map<string, Counts>();
  readonly #accounts = new Map<string, NewlyRejectedAccount>();
  #unlisted = 0;

  /** @param route undefined for a call that is not about one request, such as a reset */
  count(what: keyof ShadowCounts, route: string | undefined): void {
    this.#total[what]++;
    if (route === undefined || (this.#byRoute.size >= MAX_ROUTES && !this.#byRoute.has(route))) return;
    getOrCreate(this.#byRoute, route, noCounts)[what]++;
  }

  /** @param limit the one that rejected the request */
  addNewlyRejected(account: string, route: string, limit: LimitName): void {
    const known = this.#accounts.get(account);
    if (known === undefined && this.#accounts.size >= MAX_ACCOUNTS) this.#unlisted++;
    else this.#accounts.set(account, { account, rejected: (known?.rejected ?? 0) + 1, route, limit });
  }

  get total(): ShadowCounts {
    return { ...this.#total };
  }

  figures(): ShadowFigures {
    return {
      total: this.total,
      byRoute: Object.fromEntries([...this.#byRoute].map(([route, counts]) => [route, { ...counts }])),
      newlyRejected: [...this.#accounts.values()].sort((a, b) => b.rejected - a.rejected),
      unlisted: this.#unlisted,
    };
  }
}

function noCounts(): Counts {
  return { both: 0, none: 0, onlyCandidate: 0, onlyCurrent: 0, dropped: 0, failed: 0 };
}
