import { formatWindow, isHeadgateError, type LimitInput } from 'headgate';
import type { LimitSet } from 'headgate/limits';
import { createPostgresAdjustments } from 'headgate/postgres';
import { recommendedLimits } from 'headgate/recommended';
import { type AdjustTarget, createSharedLimits, type LimitSource, type SharedLimits } from 'headgate/shared-limits';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import { clientOf, type Database, inTransaction } from '../db/database.ts';
import { executorOf } from '../db/executor.ts';
import { METHODS } from '../domain/methods.ts';
import { ServiceError } from '../domain/service-error.ts';
import { limitsOfAttempt } from './guards.ts';

/** The layers of limits. Each overrides the layers before it. */
const SOURCES = { default: 'recommended', provider: 'application', account: 'account' } as const;

/** The layer that a limit comes from. */
export type LimitLayer = (typeof SOURCES)[keyof typeof SOURCES];

/** All accounts of a provider in an application, or one of them. */
export interface LimitOwner {
  readonly applicationId: string;
  readonly provider: string;
  readonly accountId?: string | undefined;
}

/** A limit as it applies. Without windows, requests are not limited by it. */
export interface EffectiveLimit {
  /** Null: the limit of every route. */
  readonly route: string | null;
  /** Such as `120/1m`, the shortest first. */
  readonly windows: readonly string[];
  readonly source: LimitLayer;
  /** Version of the adjustment of the owner; 0: its limit is not adjusted. */
  readonly version: number;
  /** The windows that apply after a reset. */
  readonly below: readonly string[];
}

/** Who changes a limit. */
export interface LimitAuthor {
  /** The id of a member or of a key. */
  readonly by: string;
  /** The version that the person saw. If another one applies now, nothing is changed. */
  readonly ifVersion?: number | undefined;
}

export interface AccountLimitsOptions {
  /** How often to look for changes of other processes. Undefined: this process is the only one. */
  readonly pollMs?: number | undefined;
  readonly log: Pick<Logger, 'warn'>;
  /** Most adjusted limits of all applications together. Each process keeps them in memory. */
  readonly maxAdjustments?: number | undefined;
}

/** The longest time between two readings. */
const SELDOM_MS = 60_000;
const DEADLINE_MS = 5_000;
const MAX_ADJUSTMENTS = 100_000;

/** The application and the provider of an account in one text, as the limits and the limiter name them. */
export const limitProvider = (applicationId: string, provider: string): string => `${applicationId}/${provider}`;

/**
 * The limits of every account: limits of the account override limits of its application, which override the recommended
 * limits. Adjustments are headgate's shared limits, in the database of the service.
 */
export class AccountLimits {
  /** For the limiters: of accounts, and of attempts, which are subjects without a provider. */
  readonly shared: SharedLimits;
  readonly #maxAdjustments: number;
  readonly #hasOthers: boolean;
  readonly #settings: { readonly deadlineMs: number; readonly logger: (message: string, error: unknown) => void };

  constructor(
    private readonly db: Database,
    { pollMs, log, maxAdjustments = MAX_ADJUSTMENTS }: AccountLimitsOptions,
  ) {
    const logger = (message: string, err: unknown): void => log.warn({ err }, message);
    this.#settings = { deadlineMs: DEADLINE_MS, logger };
    this.#maxAdjustments = maxAdjustments;
    this.#hasOthers = pollMs !== undefined;
    this.shared = createSharedLimits({
      base: ({ provider, route }) => (provider === undefined ? limitsOfAttempt(route) : recommendedOf(provider)),
      adjustments: createPostgresAdjustments(clientOf(db), this.#settings),
      refreshMs: pollMs ?? SELDOM_MS,
      ...{ maxAdjustments, logger },
    });
  }

  /**
   * Reads every change that was committed. Must succeed once before the first request, because the recommended limits
   * may be higher than the adjusted ones.
   */
  refresh(): Promise<void> {
    return this.shared.refresh();
  }

  /** Reads what other processes changed, if there can be others. */
  async followOthers(): Promise<void> {
    if (this.#hasOthers) await this.refresh();
  }

  close(): Promise<void> {
    return this.shared.close();
  }

  /** The limits of an owner, as this process knows them. */
  list(owner: LimitOwner): readonly EffectiveLimit[] {
    return [null, ...METHODS].map((route) => this.find(owner, route));
  }

  /** One limit of an owner. @param route null: the limit of every route */
  find({ applicationId, provider, accountId }: LimitOwner, route: string | null): EffectiveLimit {
    const subject = {
      account: accountId,
      provider: limitProvider(applicationId, provider),
      route: route ?? METHODS[0],
    };
    const origin = this.shared.explain(subject).find(({ limit }) => (limit === 'all-methods') === (route === null));
    // The most specific first.
    const sources = [origin?.applies, ...(origin?.hides ?? [])].filter((each) => each !== undefined);
    const [applies, next] = sources;
    const isOwn = applies?.layer === (accountId === undefined ? 'provider' : 'account');
    return {
      route,
      windows: windowsOf(applies),
      source: SOURCES[(applies?.layer ?? 'default') as keyof typeof SOURCES],
      version: isOwn ? (applies.adjustment?.version ?? 0) : 0,
      below: windowsOf(isOwn ? next : applies),
    };
  }

  /**
   * Adjusts or resets a limit, in the transaction of the caller. After its commit, `refresh` makes this process obey it.
   * @param windows null resets the limit
   * @throws headgate's AdjustmentConflictError; ServiceError 404 if the account is gone, 422 if there is no room
   */
  async change(
    owner: LimitOwner,
    route: string | null,
    windows: readonly string[] | null,
    { by, ifVersion }: LimitAuthor,
    transaction: Database,
  ): Promise<void> {
    const { accountId } = owner;
    if (accountId !== undefined) await holdAccount(owner.applicationId, accountId, transaction);
    if (windows !== null) await this.#checkShare(owner.applicationId, transaction);
    const target =
      accountId === undefined
        ? { provider: limitProvider(owner.applicationId, owner.provider) }
        : { account: accountId };
    try {
      await this.shared.put({ ...target, ...(route === null ? {} : { route }) }, windows ?? 'recommended', {
        ...{ by, ifVersion, confirm: true },
        transaction: this.#storeIn(transaction),
      });
    } catch (error) {
      if (isHeadgateError(error, 'too_many_adjustments')) throw noRoom();
      throw error;
    }
  }

  /** The same in a transaction of its own. This process obeys the change when the call resolves. */
  async changeNow(
    owner: LimitOwner,
    route: string | null,
    windows: readonly string[] | null,
    by: string,
  ): Promise<void> {
    await inTransaction(this.db, (transaction) => this.change(owner, route, windows, { by }, transaction));
    await this.refresh();
  }

  /** Resets every limit of an account that is removed. */
  async forget(accountId: string, transaction: Database): Promise<void> {
    const targets: readonly AdjustTarget[] = [{}, ...METHODS.map((route) => ({ route }))];
    await this.shared.change(
      targets.map((target) => ({ target: { ...target, account: accountId }, windows: 'recommended' })),
      { by: 'service', reason: 'the account was removed', transaction: this.#storeIn(transaction) },
    );
  }

  #storeIn(transaction: Database) {
    return createPostgresAdjustments(executorOf(transaction), this.#settings);
  }

  /** An application may have as many adjusted limits as are free, so that each one finds room. */
  async #checkShare(applicationId: string, transaction: Database): Promise<void> {
    const all = this.shared.list();
    const free = this.#maxAdjustments - all.length;
    if (all.length < free) return;
    const ids = all.flatMap(({ target }) => target.account ?? []);
    const { own } = await transaction
      .selectFrom('accounts')
      .select((columns) => columns.fn.countAll<string>().as('own'))
      .where('application_id', '=', applicationId)
      .where('id', '=', sql<string>`any(${ids})`)
      .executeTakeFirstOrThrow();
    if (Number(own) >= free) throw noRoom();
  }
}

/** Keeps the account from being removed until the transaction ends, so that no limit of it stays behind. */
async function holdAccount(applicationId: string, id: string, transaction: Database): Promise<void> {
  const row = await transaction
    .selectFrom('accounts')
    .select('id')
    .where('application_id', '=', applicationId)
    .where('id', '=', id)
    .where('removed_at', 'is', null)
    .forShare()
    .executeTakeFirst();
  if (row === undefined)
    throw new ServiceError(404, 'errors/invalid_resource_identifier', 'The account was removed meanwhile.');
}

const noRoom = (): ServiceError =>
  new ServiceError(422, 'errors/unprocessable_entity', 'There are too many adjusted limits. Reset some of them.');

const windowsOf = (source: LimitSource | undefined): readonly string[] => (source?.windows ?? []).map(formatWindow);

/**
 * Microsoft serves at most four requests of an application for one mailbox at the same time. The fifth would get its error
 * `MailboxConcurrency`.
 */
const OUTLOOK: LimitSet = {
  ...recommendedLimits.outlook,
  allMethods: { windows: recommendedLimits.outlook.allMethods as LimitInput, inFlight: 4 },
};

/** @param provider see {@link limitProvider} */
function recommendedOf(name: string): LimitSet {
  const provider = name.slice(name.indexOf('/') + 1);
  if (!Object.hasOwn(recommendedLimits, provider))
    throw new Error(`There are no limits for the provider "${provider}".`);
  return provider === 'outlook' ? OUTLOOK : recommendedLimits[provider as keyof typeof recommendedLimits];
}
