import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { ApplicationRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import type { Environment } from '../domain/key-token.ts';

export type Application = Selectable<ApplicationRow>;

/** The applications that use the service. Keys, scopes, accounts and links belong to one application each. */
export class Applications {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  async create(name: string, environment: Environment): Promise<Application> {
    const now = this.clock();
    return this.db
      .insertInto('applications')
      .values({ id: newId('app', now), name, environment, created_at: new Date(now) })
      .returningAll()
      .executeTakeFirstOrThrow();
  }

  /** The application, if it exists. */
  async find(id: string): Promise<Application | undefined> {
    return this.db.selectFrom('applications').selectAll().where('id', '=', id).executeTakeFirst();
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
