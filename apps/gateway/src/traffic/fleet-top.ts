import type { TopAccount, TopList } from './top-accounts.ts';

/** An account at the top of all processes. */
export interface FleetAccount extends TopAccount {
  /** How many more requests may be missing, from processes that do not list the account. */
  readonly missing: number;
}

/** The accounts at the top of all processes. */
export interface FleetTop extends Pick<TopList, 'exact' | 'sinceMs'> {
  readonly accounts: readonly FleetAccount[];
}

/** The sum of several processes' figures for one account. */
interface Sum {
  count: number;
  error: number;
  lastMinute: number;
  /** Sum of `unlisted` over the processes that list the account. */
  listed: number;
  /** Figures of the process with the most requests of the account, first by the last minute's requests. */
  most: TopAccount;
}

/** Adds the lists of several processes together. */
export class FleetSum {
  readonly #sums = new Map<string, Sum>();
  #unlisted = 0;
  #isExact = true;
  #sinceMs = Number.POSITIVE_INFINITY;

  add({ accounts, unlisted, exact, sinceMs }: TopList): void {
    this.#unlisted += unlisted;
    this.#isExact &&= exact && unlisted === 0;
    this.#sinceMs = Math.min(this.#sinceMs, sinceMs);
    for (const each of accounts) this.#addAccount(each, unlisted);
  }

  /** @param limit few: the sums may be many, and are not sorted */
  top(limit: number): FleetTop {
    const top: Sum[] = [];
    for (const sum of this.#sums.values()) {
      if (top.length === limit && isBefore(top[limit - 1] as Sum, sum)) continue;
      const place = top.findIndex((each) => isBefore(sum, each));
      top.splice(place === -1 ? top.length : place, 0, sum);
      if (top.length > limit) top.pop();
    }
    const accounts = top.map(({ count, error, lastMinute, listed, most }) => {
      const missing = this.#unlisted - listed;
      return { ...most, count, error, lastMinute, missing };
    });
    return { accounts, exact: this.#isExact, sinceMs: this.#sinceMs };
  }

  #addAccount(each: TopAccount, unlisted: number): void {
    const { account, count, error, lastMinute } = each;
    const known = this.#sums.get(account);
    if (known === undefined) {
      this.#sums.set(account, { count, error, lastMinute, listed: unlisted, most: each });
      return;
    }
    if (isMore(each, known.most)) known.most = each;
    known.count += count;
    known.error += error;
    known.lastMinute += lastMinute;
    known.listed += unlisted;
  }
}

function isBefore(a: Sum, b: Sum): boolean {
  return isMore(a, b) || (!isMore(b, a) && a.most.account < b.most.account);
}

/** The last minute decides: the cause of rejections ten minutes ago may be gone. */
function isMore(a: Pick<TopAccount, 'lastMinute' | 'count'>, b: typeof a): boolean {
  return a.lastMinute > b.lastMinute || (a.lastMinute === b.lastMinute && a.count > b.count);
}
