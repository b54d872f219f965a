import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { ScopeRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import type { Page } from '../domain/page.ts';

export type Scope = Selectable<ScopeRow>;

/** What an application says about a scope. */
export interface ScopeText {
  readonly name: string;
  /** What the application itself calls the scope, for example the id of a customer. */
  readonly reference: string | null;
}

/** Groups of accounts. A scoped key reaches the accounts of one scope. */
export class Scopes {
  /** @param onChange called after each change of what the keys of a scope may do */
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly onChange: () => void,
  ) {}

  async create(applicationId: string, { name, reference }: ScopeText): Promise<Scope> {
    const now = this.clock();
    return this.db
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

  async find(applicationId: string, id: string): Promise<Scope | undefined> {
    if (!isId(id, 'scp')) return undefined;
    return this.db
      .selectFrom('scopes')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('removed_at', 'is', null)
      .executeTakeFirst();
  }

  /** Changes what is given. Undefined if there is no such scope. */
  async update(
    applicationId: string,
    id: string,
    changes: { readonly [Field in keyof ScopeText]?: ScopeText[Field] | undefined },
  ): Promise<Scope | undefined> {
    const given = Object.entries(changes).filter(([, value]) => value !== undefined);
    if (given.length === 0) return this.find(applicationId, id);
    return this.#set(applicationId, id, Object.fromEntries(given));
  }

  /** Enables or disables a scope; keys of a disabled scope are refused. Undefined if there is no such scope. */
  async setStatus(applicationId: string, id: string, status: Scope['status']): Promise<Scope | undefined> {
    const scope = await this.#set(applicationId, id, { status });
    this.onChange();
    return scope;
  }

  /** Deletes a scope that has no accounts, and revokes its keys. */
  async remove(applicationId: string, id: string): Promise<'removed' | 'has accounts' | 'unknown'> {
    if (!isId(id, 'scp')) return 'unknown';
    const now = new Date(this.clock());
    const result = await this.db.transaction().execute(async (transaction) => {
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
  ): Promise<Scope | undefined> {
    if (!isId(id, 'scp')) return undefined;
    return this.db
      .updateTable('scopes')
      .set(changes)
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('removed_at', 'is', null)
      .returningAll()
      .executeTakeFirst();
  }
}
