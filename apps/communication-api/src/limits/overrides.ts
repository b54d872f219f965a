import { sql } from 'kysely';
import { type Database, inTransaction } from '../db/database.ts';
import { json } from '../db/json.ts';
import type { Clock } from '../domain/clock.ts';

/** The owner of an adjusted limit: one account, or all accounts of a provider. */
export type LimitOwner = { readonly provider: string } | { readonly accountId: string };

/** A limit that was adjusted. */
export interface Override {
  readonly applicationId: string;
  /** Undefined: the limit of all accounts of the provider. */
  readonly accountId: string | undefined;
  readonly provider: string;
  /** Null: the limit of every route. */
  readonly route: string | null;
  readonly windows: readonly string[];
}

/** Adjusted limits, as they are stored. Each change of an application's limits raises its version. */
export class LimitOverrides {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  async set(
    applicationId: string,
    owner: LimitOwner,
    route: string | null,
    windows: readonly string[],
    changedBy: string,
    db: Database = this.db,
  ): Promise<void> {
    const changed = { windows: json([...windows]), changed_by: changedBy, changed_at: new Date(this.clock()) };
    await this.#change(applicationId, db, async (transaction) => {
      await transaction
        .insertInto('limit_overrides')
        .values({ application_id: applicationId, ...columnsOf(owner), route, ...changed })
        .onConflict((conflict) =>
          conflict.columns(['application_id', 'provider', 'account_id', 'route']).doUpdateSet(changed),
        )
        .execute();
    });
  }

  /** The windows of an adjustment. Undefined if there is no adjustment. */
  async find(
    applicationId: string,
    owner: LimitOwner,
    route: string | null,
    db: Database = this.db,
  ): Promise<readonly string[] | undefined> {
    const { provider, account_id } = columnsOf(owner);
    const row = await db
      .selectFrom('limit_overrides')
      .select('windows')
      .where('application_id', '=', applicationId)
      .where('provider', 'is not distinct from', provider)
      .where('account_id', 'is not distinct from', account_id)
      .where('route', 'is not distinct from', route)
      .executeTakeFirst();
    return row?.windows;
  }

  /**
   * Adjusts or resets a limit, if it is still the limit that the person saw. Otherwise returns false and changes
   * nothing.
   * @param change `windows` null removes the adjustment
   */
  async replace(
    applicationId: string,
    owner: LimitOwner,
    route: string | null,
    change: {
      readonly windows: readonly string[] | null;
      readonly changedBy: string;
      isAsSeen(own: readonly string[] | undefined): boolean;
    },
    transaction: Database,
  ): Promise<boolean> {
    // Another change of the application waits here, so that both do not see the same.
    await this.#lock(applicationId, transaction);
    const own = await this.find(applicationId, owner, route, transaction);
    if (!change.isAsSeen(own)) return false;
    const { windows, changedBy } = change;
    if (windows === null) await this.remove(applicationId, owner, route, transaction);
    else await this.set(applicationId, owner, route, windows, changedBy, transaction);
    return true;
  }

  /** Removes an adjustment, if it exists. */
  async remove(applicationId: string, owner: LimitOwner, route: string | null, db: Database = this.db): Promise<void> {
    const { provider, account_id } = columnsOf(owner);
    await this.#change(applicationId, db, async (transaction) => {
      await transaction
        .deleteFrom('limit_overrides')
        .where('application_id', '=', applicationId)
        .where('provider', 'is not distinct from', provider)
        .where('account_id', 'is not distinct from', account_id)
        .where('route', 'is not distinct from', route)
        .execute();
    });
  }

  /** The version of each application that ever adjusted a limit. */
  async versions(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.db.selectFrom('limits_version').select(['application_id', 'version']).execute();
    return new Map(rows.map(({ application_id, version }) => [application_id, version]));
  }

  /** The adjusted limits of some applications. */
  async read(applicationIds: readonly string[]): Promise<readonly Override[]> {
    if (applicationIds.length === 0) return [];
    const rows = await this.db
      .selectFrom('limit_overrides as override')
      .leftJoin('accounts as account', 'account.id', 'override.account_id')
      .select(['override.application_id', 'override.account_id', 'override.route', 'override.windows'])
      .select((columns) =>
        columns.fn.coalesce('override.provider', 'account.provider').$castTo<string>().as('provider'),
      )
      .where('override.application_id', '=', sql<string>`any(${[...applicationIds]})`)
      .execute();
    return rows.map(({ application_id, account_id, provider, route, windows }) => ({
      applicationId: application_id,
      accountId: account_id ?? undefined,
      provider,
      route,
      windows,
    }));
  }

  /**
   * The version changes in the transaction of its limits. Its row is locked first, so the changes of an application are
   * committed in the order of their versions, and a version that was read is never followed by a smaller one.
   */
  async #change(applicationId: string, db: Database, change: (transaction: Database) => Promise<void>): Promise<void> {
    await inTransaction(db, async (transaction) => {
      await this.#lock(applicationId, transaction);
      await change(transaction);
    });
  }

  /** Raises the version. Its row stays locked until the end of the transaction. */
  async #lock(applicationId: string, transaction: Database): Promise<void> {
    await transaction
      .insertInto('limits_version')
      .values({ application_id: applicationId, version: 1, changed_at: new Date(this.clock()) })
      .onConflict((conflict) =>
        conflict.column('application_id').doUpdateSet({
          version: sql<number>`limits_version.version + 1`,
          changed_at: (columns) => columns.ref('excluded.changed_at'),
        }),
      )
      .execute();
  }
}

const columnsOf = (owner: LimitOwner): { provider: string | null; account_id: string | null } =>
  'provider' in owner
    ? { provider: owner.provider, account_id: null }
    : { provider: null, account_id: owner.accountId };
