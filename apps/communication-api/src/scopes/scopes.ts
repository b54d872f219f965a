import type { Selectable } from 'kysely';
import { type Database, inTransaction } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { ScopeRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import type { Page } from '../domain/page.ts';

export type Scope = Selectable<ScopeRow>;

/** The texts of an application for a scope. */
export interface ScopeText {
  readonly name: string;
  /** The application's own name for the scope, for example the id of a customer. */
  readonly reference: string | null;
}

/** The number of things in a scope. */
export interface ScopeUse {
  readonly accounts: number;
  /** Keys that are not revoked. */
  readonly keys: number;
}

/** Groups of accounts. A scoped key reaches the accounts of one scope. */
export class Scopes {
  /**
   * @param onChange called after each change of the rights of a scope's keys. A caller with its own transaction calls
   * it once more after the end of that transaction
   */
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly onChange: () => void,
  ) {}

  async create(applicationId: string, { name, reference }: ScopeText, db: Database = this.db): Promise<Scope> {
    const now = this.clock();
    return db
      .insertInto('scopes')
      .values({
        id: newId('scp', now),
        application_id: applicationId,
        name,
        reference,
        status: 'active',
        created_at: new Date(now),
      })
      .returningAll()
      .executeTakeFirstOrThrow();
  }

  /** One page, and the first entry of the next page if there is one. */
  async list(applicationId: string, page: Page): Promise<readonly Scope[]> {
    return this.db
      .selectFrom('scopes')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('removed_at', 'is', null)
      .$call(onPage(page))
      .execute();
  }

  async find(applicationId: string, id: string, db: Database = this.db): Promise<Scope | undefined> {
    if (!isId(id, 'scp')) return undefined;
    return db
      .selectFrom('scopes')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('removed_at', 'is', null)
      .executeTakeFirst();
  }

  /** The number of things in each of some scopes. */
  async usesOf(applicationId: string, ids: readonly string[]): Promise<ReadonlyMap<string, ScopeUse>> {
    if (ids.length === 0) return new Map();
    const rows = await this.db
      .selectFrom('scopes')
      .select((scope) => [
        'scopes.id',
        scope
          .selectFrom('accounts')
          .select(({ fn }) => fn.countAll<string>().as('count'))
          .where('accounts.application_id', '=', applicationId)
          .whereRef('accounts.scope_id', '=', 'scopes.id')
          .where('accounts.removed_at', 'is', null)
          .as('accounts'),
        scope
          .selectFrom('api_keys')
          .select(({ fn }) => fn.countAll<string>().as('count'))
          .where('api_keys.application_id', '=', applicationId)
          .whereRef('api_keys.scope_id', '=', 'scopes.id')
          .where('api_keys.revoked_at', 'is', null)
          .as('keys'),
      ])
      .where('scopes.application_id', '=', applicationId)
      .where('scopes.id', 'in', ids)
      .execute();
    return new Map(rows.map(({ id, accounts, keys }) => [id, { accounts: Number(accounts), keys: Number(keys) }]));
  }

  /** Changes the given values. Returns undefined if the scope does not exist. */
  async update(
    applicationId: string,
    id: string,
    changes: { readonly [Field in keyof ScopeText]?: ScopeText[Field] | undefined },
    db: Database = this.db,
  ): Promise<Scope | undefined> {
    const given = Object.entries(changes).filter(([, value]) => value !== undefined);
    if (given.length === 0) return this.find(applicationId, id, db);
    return this.#set(applicationId, id, Object.fromEntries(given), db);
  }

  /**
   * Enables or disables a scope; keys of a disabled scope are refused. Returns undefined if the scope does not exist.
   */
  async setStatus(
    applicationId: string,
    id: string,
    status: Scope['status'],
    db: Database = this.db,
  ): Promise<Scope | undefined> {
    const scope = await this.#set(applicationId, id, { status }, db);
    this.onChange();
    return scope;
  }

  /** Deletes a scope without accounts, and revokes its keys. */
  async remove(
    applicationId: string,
    id: string,
    db: Database = this.db,
  ): Promise<'removed' | 'has accounts' | 'unknown'> {
    if (!isId(id, 'scp')) return 'unknown';
    const now = new Date(this.clock());
    const result = await inTransaction(db, async (transaction) => {
      // The lock waits for requests that are about to use the scope, and makes later ones wait: see lockActiveScope.
      const scope = await transaction
        .selectFrom('scopes')
        .select('id')
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        .forUpdate()
        .executeTakeFirst();
      if (scope === undefined) return 'unknown';
      const account = await transaction
        .selectFrom('accounts')
        .select('id')
        .where('application_id', '=', applicationId)
        .where('scope_id', '=', id)
        .where('removed_at', 'is', null)
        .limit(1)
        .executeTakeFirst();
      if (account !== undefined) return 'has accounts';
      await transaction
        .updateTable('scopes')
        .set({ removed_at: now })
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .execute();
      await transaction
        .updateTable('api_keys')
        .set({ revoked_at: now })
        .where('application_id', '=', applicationId)
        .where('scope_id', '=', id)
        .where('revoked_at', 'is', null)
        .execute();
      return 'removed';
    });
    this.onChange();
    return result;
  }

  async #set(
    applicationId: string,
    id: string,
    changes: Partial<Pick<Scope, 'name' | 'reference' | 'status'>>,
    db: Database,
  ): Promise<Scope | undefined> {
    if (!isId(id, 'scp')) return undefined;
    return db
      .updateTable('scopes')
      .set(changes)
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('removed_at', 'is', null)
      .returningAll()
      .executeTakeFirst();
  }
}
