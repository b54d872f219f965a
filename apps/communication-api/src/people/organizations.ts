import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { OrganizationRow } from '../db/tables.ts';
import type { SecondFactorFor } from '../domain/second-factor.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { Actor, AuditLog } from './audit-log.ts';

export type Organization = Selectable<OrganizationRow>;

/** The organization of an installation. The migration of the schema makes it. */
export const ORGANIZATION_ID = 'org_00000000000000000000000000';

/** The operator, at the command line. */
export const OPERATOR: Actor = { id: null, organizationId: ORGANIZATION_ID, name: 'Operator', role: null };

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
      await holdRole(actor, transaction);
      await transaction.updateTable('organizations').set({ name }).where('id', '=', actor.organizationId).execute();
      await this.audit.add(actor, { action: 'renamed the organization', subject: name }, transaction);
    });
  }

  /** Says for which work members need a second factor. It counts from each member's next request. */
  async requireSecondFactor(actor: Actor, work: SecondFactorFor): Promise<void> {
    await this.db.transaction().execute(async (transaction) => {
      await holdRole(actor, transaction);
      await transaction
        .updateTable('organizations')
        .set({ second_factor_for: work })
        .where('id', '=', actor.organizationId)
        .execute();
      await this.audit.add(actor, { action: 'changed who needs a second factor', subject: work }, transaction);
    });
  }
}

/** Makes changes of an organization's members wait for each other: two changes must not remove the last two owners. */
export async function lockOrganization(id: string, transaction: Database): Promise<void> {
  // A reference to the organization, as in each new row of the audit log, does not wait for this lock.
  await transaction.selectFrom('organizations').select('id').where('id', '=', id).forNoKeyUpdate().execute();
}

/**
 * Makes a change of the actor's role wait for the end of the transaction. Otherwise a person who loses a role could use
 * it once more with requests that wait at this moment, for example to get the role back.
 * @throws ServiceError 403 if the actor was removed, or got another role, since the beginning of the request
 */
export async function holdRole({ id, role }: Actor, transaction: Database): Promise<void> {
  if (id === null) return;
  const row = await transaction.selectFrom('members').select('role').where('id', '=', id).forShare().executeTakeFirst();
  if (row?.role !== role)
    throw new ServiceError(403, 'errors/insufficient_permissions', 'Your role was changed meanwhile.');
}
