import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { ApplicationRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import type { Environment } from '../domain/key-token.ts';
import type { Page } from '../domain/page.ts';

export type Application = Selectable<ApplicationRow>;

/** The applications that use the service. Keys, scopes, accounts and links belong to one application each. */
export class Applications {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  /** Creates an application. Default of the organization: the organization of the installation. */
  async create(
    name: string,
    environment: Environment,
    organizationId?: string,
    db: Database = this.db,
  ): Promise<Application> {
    const now = this.clock();
    return db
      .insertInto('applications')
      .values({
        id: newId('app', now),
        name,
        environment,
        created_at: new Date(now),
        ...(organizationId === undefined ? {} : { organization_id: organizationId }),
      })
      .returningAll()
      .executeTakeFirstOrThrow();
  }

  /** The application, if it exists. */
  async find(id: string): Promise<Application | undefined> {
    return this.db.selectFrom('applications').selectAll().where('id', '=', id).executeTakeFirst();
  }

  /** One page of the applications of an organization, and the first application of the next page. */
  async list(organizationId: string, page: Page): Promise<readonly Application[]> {
    return this.db
      .selectFrom('applications')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .$call(onPage(page))
      .execute();
  }

  /** An application of an organization. */
  async findIn(organizationId: string, id: string): Promise<Application | undefined> {
    if (!isId(id, 'app')) return undefined;
    return this.db
      .selectFrom('applications')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .executeTakeFirst();
  }

  /** The oldest application of a name, or the oldest of all. */
  async findOldest(name?: string): Promise<Application | undefined> {
    let query = this.db.selectFrom('applications').selectAll();
    if (name !== undefined) query = query.where('name', '=', name);
    return query.orderBy('id').limit(1).executeTakeFirst();
  }

  async isEmpty(): Promise<boolean> {
    return (await this.db.selectFrom('applications').select('id').limit(1).executeTakeFirst()) === undefined;
  }
}
