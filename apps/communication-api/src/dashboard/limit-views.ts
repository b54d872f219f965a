import { parseLimit } from 'headgate';
import type { Account } from '../accounts/accounts.ts';
import { type PreviewedWindow, previewOf, type UsedWindow } from '../domain/limit-preview.ts';
import { METHODS } from '../domain/methods.ts';
import { type EffectiveLimit, type LimitLayer, limitProvider } from '../limits/account-limits.ts';
import type { Rooms } from '../rooms.ts';
import { formValueOf, limitLabel } from './limit-form.ts';
import type { LimitTarget } from './limit-target.ts';

/** Accounts of a provider that a preview looks at: each is a question to the counters. */
export const MAX_LOOKED_AT = 200;

/** A limit as a page shows it. */
export interface LimitView {
  /** Its value in a form. */
  readonly value: string;
  readonly label: string;
  /** The windows, as a person enters them. */
  readonly text: string;
  readonly source: LimitLayer;
  /** Whether the limit was adjusted for the subject of the page, so that it can be reset there. */
  readonly isOwn: boolean;
  /** The present count of each window. Undefined: the limit applies to many accounts. */
  readonly windows: readonly PreviewedWindow[] | undefined;
  /** The version of the limit that the person saw, to find out whether another person changed it meanwhile. */
  readonly seen: number;
}

/** An account that a limit rejects. */
export interface RejectedAccount {
  readonly account: Account;
  /** The windows that reject it. */
  readonly windows: readonly PreviewedWindow[];
}

/** The present effect of a change of a provider's limit on its accounts. */
export interface Impact {
  /** Accounts that were looked at: those that were used last. */
  readonly lookedAt: number;
  /** Whether the application owns more of them. */
  readonly hasMore: boolean;
  /** Accounts with their own limit, which the change does not reach. */
  readonly withOwnLimit: number;
  /** Accounts that are accepted now, and would be rejected. */
  readonly rejected: readonly RejectedAccount[];
  /** Accounts that are rejected now, and would be rejected still. */
  readonly stillRejected: readonly RejectedAccount[];
  /** Accounts that are rejected now, and would be accepted. */
  readonly accepted: readonly RejectedAccount[];
}

/** The limits of an account or a provider, with their present counts. */
export class LimitViews {
  constructor(private readonly rooms: Pick<Rooms, 'accounts' | 'limits' | 'limiter'>) {}

  /** The limits, as they are in the database now. */
  async of(target: LimitTarget): Promise<readonly LimitView[]> {
    const { limits } = this.rooms;
    await limits.followOthers();
    return Promise.all(limits.list(target).map((limit) => this.#viewOf(target, limit)));
  }

  /** The limit after a change. */
  next(target: LimitTarget, route: string | null, windows: readonly string[] | null): readonly string[] {
    return windows ?? this.rooms.limits.find(target, route).below;
  }

  /** The effect of windows on an account now. */
  async preview(account: Account, route: string | null, windows: readonly string[]) {
    return wouldBe(windows, await this.#usedOf(account, route));
  }

  /** The effect of windows now on every account of the provider with active windows. */
  async impact(
    { applicationId, provider }: LimitTarget,
    route: string | null,
    windows: readonly string[],
  ): Promise<Impact> {
    const { accounts, limits } = this.rooms;
    const found = await accounts.lastUsed(applicationId, provider, MAX_LOOKED_AT + 1);
    const all = found.slice(0, MAX_LOOKED_AT);
    const reached = all.filter(
      ({ id }) => limits.find({ applicationId, provider, accountId: id }, route).source !== 'account',
    );
    const current = limits.find({ applicationId, provider }, route).windows;
    const changes = await Promise.all(
      reached.map(async (account) => {
        const used = await this.#usedOf(account, route);
        const [before, after] = [current, windows].map((each) => wouldBe(each, used).filter(({ rejects }) => rejects));
        return { account, before: before ?? [], after: after ?? [] };
      }),
    );
    const was = changes.filter(({ before }) => before.length > 0);
    return {
      lookedAt: all.length,
      hasMore: found.length > all.length,
      withOwnLimit: all.length - reached.length,
      rejected: changes
        .filter(({ before, after }) => before.length === 0 && after.length > 0)
        .map(({ account, after }) => ({ account, windows: after })),
      stillRejected: was.flatMap(({ account, after }) => (after.length > 0 ? [{ account, windows: after }] : [])),
      accepted: was.flatMap(({ account, before, after }) => (after.length > 0 ? [] : [{ account, windows: before }])),
    };
  }

  async #viewOf({ account }: LimitTarget, { route, windows, source, version }: EffectiveLimit): Promise<LimitView> {
    return {
      value: formValueOf(route),
      label: limitLabel(route),
      text: windows.join(', '),
      source,
      isOwn: version > 0,
      windows: account && (await this.preview(account, route, windows)),
      seen: version,
    };
  }

  /** The present usage of a limit by an account. */
  async #usedOf({ id, application_id, provider: name }: Account, route: string | null): Promise<readonly UsedWindow[]> {
    const provider = limitProvider(application_id, name);
    // Each route counts for itself, also against the limit of every route.
    const used = await this.rooms.limiter.peek({ account: id, provider, route: route ?? METHODS[0] });
    return used
      .filter(({ limit }) => (limit === 'all-methods') === (route === null))
      .map(({ max, remaining, durationMs, resetMs }) => ({ used: max - remaining, durationMs, resetMs }));
  }
}

const wouldBe = (windows: readonly string[], used: readonly UsedWindow[]): readonly PreviewedWindow[] =>
  previewOf(windows.length === 0 ? [] : parseLimit(windows), used);
