import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { OrganizationRow } from '../db/tables.ts';
import type { Actor, AuditLog } from './audit-log.ts';

export type Organization = Selectable<OrganizationRow>;

/** The organization of an installation. The migration of the schema makes it. */
export const ORGANIZATION_ID = 'org_00000000000000000000000000';

/** Organizations, to which applications and members belong. */
export class Organizations {
  constructor(
    private readonly db: Database,
    private readonly audit: AuditLog,
  ) {}

  async find(id: string): Promise<Organization | undefined> {
    return this.db.selectFrom('organizations').selectAll().where('id', '=', id).executeTakeFirst();
  }

  async rename(actor: Actor, name: string): Promise<void> {
    await this.db.transaction().execute(async (transaction) => {
      await transaction.updateTable('organizations').set({ name }).where('id', '=', actor.organizationId).execute();
      await this.audit.add(actor, { action: 'renamed the organization', subject: name }, transaction);
    });
  }
}

/**
 * Has changes of the members of an organization wait for each other, so that two of them cannot take away the last two
 * owners.
 */
export async function lockOrganization(id: string, transaction: Database): Promise<void> {
  await transaction.selectFrom('organizations').select('id').where('id', '=', id).forUpdate().execute();
}
