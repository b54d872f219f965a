import type { Selectable } from 'kysely';
import { countInTurn } from '../db/count.ts';
import { type Database, inTransaction } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { DomainRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import type { DomainPurpose, DomainRecord } from '../domain/custom-domain.ts';
import { isId, newId } from '../domain/ids.ts';
import type { Page } from '../domain/page.ts';

export type Domain = Selectable<DomainRow>;

/** The most domains of one application. */
export const MAX_DOMAINS = 100;
/** A verified domain whose records were missing so many times is failing. */
const MAX_FAILURES = 3;

export type Creation =
  | { readonly kind: 'created'; readonly domain: Domain }
  /** The application already owns this host. */
  | { readonly kind: 'exists' }
  | { readonly kind: 'too many' };

/** Custom domains of applications: hosts of the wizard, and of the links in tracked emails. */
export class Domains {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  /** Adds a host that is not verified yet. */
  async create(applicationId: string, host: string, purpose: DomainPurpose, db: Database = this.db): Promise<Creation> {
    const now = this.clock();
    return inTransaction(db, async (trx): Promise<Creation> => {
      if ((await countInTurn(applicationId, 'domains', trx)) >= MAX_DOMAINS) return { kind: 'too many' };
      const domain = await trx
        .insertInto('domains')
        .values({
          id: newId('dom', now),
          application_id: applicationId,
          host,
          purpose,
          status: 'pending',
          created_at: new Date(now),
        })
        .onConflict((conflict) => conflict.columns(['application_id', 'host']).doNothing())
        .returningAll()
        .executeTakeFirst();
      return domain === undefined ? { kind: 'exists' } : { kind: 'created', domain };
    });
  }

  /** One page, and the first entry of the next page if there is one. */
  async list(applicationId: string, page: Page): Promise<readonly Domain[]> {
    return this.db
      .selectFrom('domains')
      .selectAll()
      .where('application_id', '=', applicationId)
      .$call(onPage(page))
      .execute();
  }

  /** One page of the domains of all applications of an organization, and the first entry of the next page. */
  async listIn(organizationId: string, page: Page): Promise<readonly Domain[]> {
    return this.#in(organizationId).$call(onPage(page)).execute();
  }

  /** A domain of any application of an organization. */
  async findIn(organizationId: string, id: string): Promise<Domain | undefined> {
    if (!isId(id, 'dom')) return undefined;
    return this.#in(organizationId).where('id', '=', id).executeTakeFirst();
  }

  async find(applicationId: string, id: string): Promise<Domain | undefined> {
    if (!isId(id, 'dom')) return undefined;
    return this.db
      .selectFrom('domains')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .executeTakeFirst();
  }

  /** The domain of a host, whatever its status is. */
  async findHost(applicationId: string, host: string, purpose: DomainPurpose): Promise<Domain | undefined> {
    return this.db
      .selectFrom('domains')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('host', '=', host)
      .where('purpose', '=', purpose)
      .executeTakeFirst();
  }

  /** False if the domain does not exist. */
  async remove(applicationId: string, id: string, db: Database = this.db): Promise<boolean> {
    if (!isId(id, 'dom')) return false;
    const { numDeletedRows } = await db
      .deleteFrom('domains')
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Whether requests for a host are served: it was verified once. A failing host that is reached is served, too. */
  async isServed(host: string): Promise<boolean> {
    const row = await this.db
      .selectFrom('domains')
      .select('id')
      .where('host', '=', host)
      .where('status', '<>', 'pending')
      .executeTakeFirst();
    return row !== undefined;
  }

  /**
   * Stores that both records were found. If another application verified the host before and its records are missing
   * now, that application loses the host.
   * @returns `taken`: another application owns the host, and its records are there
   */
  async setVerified(applicationId: string, id: string, db: Database = this.db): Promise<Domain | 'taken' | undefined> {
    return inTransaction(db, async (trx) => {
      // Applications that verify one host at the same time wait for each other here.
      const sameHost = await trx
        .selectFrom('domains')
        .select(['id', 'status'])
        .where('host', 'in', (db) =>
          db.selectFrom('domains').select('host').where('application_id', '=', applicationId).where('id', '=', id),
        )
        .orderBy('id')
        .forUpdate()
        .execute();
      const other = sameHost.find((row) => row.id !== id && row.status !== 'pending');
      if (other?.status === 'verified') return 'taken';
      if (other !== undefined)
        await trx.updateTable('domains').set({ status: 'pending', failures: 0 }).where('id', '=', other.id).execute();
      return trx
        .updateTable('domains')
        .set({ status: 'verified', failures: 0, missing: [], checked_at: new Date(this.clock()) })
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst();
    });
  }

  /**
   * Stores which records were missing.
   * @param isDaily whether this is the daily check: its third failure in a row makes a verified domain fail
   */
  async setMissing(
    applicationId: string,
    id: string,
    missing: readonly DomainRecord['type'][],
    isDaily: boolean,
    db: Database = this.db,
  ): Promise<Domain | undefined> {
    return db
      .updateTable('domains')
      .set(({ eb, ref, case: when }) => ({
        missing: [...missing],
        checked_at: new Date(this.clock()),
        ...(isDaily
          ? {
              failures: eb('failures', '+', 1),
              status: when()
                .when(eb.and([eb('status', '=', 'verified'), eb('failures', '>=', MAX_FAILURES - 1)]))
                .then('failing' as const)
                .else(ref('status'))
                .end(),
            }
          : {}),
      }))
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirst();
  }

  /** Domains of all applications that were verified once, oldest check first. */
  async inUse(limit: number): Promise<readonly Domain[]> {
    return this.db
      .selectFrom('domains')
      .selectAll()
      .where('status', '<>', 'pending')
      .orderBy('checked_at')
      .limit(limit)
      .execute();
  }

  /**
   * Takes domains of all applications that were not checked since a time. Another process does not get the same ones.
   * @param limit domains per call
   */
  async takeUnchecked(since: Date, limit: number): Promise<readonly Domain[]> {
    return this.db
      .updateTable('domains')
      .set({ checked_at: new Date(this.clock()) })
      .where('id', 'in', (db) =>
        db
          .selectFrom('domains')
          .select('id')
          .where('status', '<>', 'pending')
          .where(({ eb, or }) => or([eb('checked_at', '<', since), eb('checked_at', 'is', null)]))
          .orderBy('checked_at')
          .limit(limit)
          .forUpdate()
          .skipLocked(),
      )
      .returningAll()
      .execute();
  }

  #in(organizationId: string) {
    return this.db
      .selectFrom('domains')
      .selectAll()
      .where('application_id', 'in', (db) =>
        db.selectFrom('applications').select('id').where('organization_id', '=', organizationId),
      );
  }
}
