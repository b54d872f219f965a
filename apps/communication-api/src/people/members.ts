import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { MemberRow } from '../db/tables.ts';
import { isId } from '../domain/ids.ts';
import type { MemberRole } from '../domain/member-roles.ts';
import { hashPassword, isPassword } from '../security/passwords.ts';
import type { Actor, AuditLog } from './audit-log.ts';
import { holdRole, lockOrganization } from './organizations.ts';

/** A person with a login, without the hash of the password. */
export type Member = Omit<Selectable<MemberRow>, 'password_hash'>;

export const MEMBER_FIELDS = ['id', 'organization_id', 'role', 'email', 'name', 'created_at'] as const;

/** A member who entered the right password, and the stored hash of this password. */
export interface Authenticated {
  readonly member: Member;
  readonly passwordHash: string;
}

/** The result of a change of a member. */
export type MemberChange = 'changed' | 'unknown' | 'forbidden' | 'last owner';

export const actorOf = ({ id, organization_id, name, role }: Member): Actor => ({
  id,
  organizationId: organization_id,
  name,
  role,
});

/** The people who may use the dashboard. */
export class Members {
  constructor(
    private readonly db: Database,
    private readonly audit: AuditLog,
  ) {}

  async hasOwner(organizationId: string, db: Database = this.db): Promise<boolean> {
    return (await ownersOf(organizationId, db)).length > 0;
  }

  /** All members of an organization, the newest first. */
  async list(organizationId: string): Promise<readonly Member[]> {
    return this.db
      .selectFrom('members')
      .select(MEMBER_FIELDS)
      .where('organization_id', '=', organizationId)
      .orderBy('id', 'desc')
      .execute();
  }

  /** The member with an address and a password. An unknown address takes as long as a known one. */
  async authenticate(email: string, password: string): Promise<Authenticated | undefined> {
    const row = await this.db.selectFrom('members').selectAll().where('email', '=', email).executeTakeFirst();
    if (!(await isPassword(password, row?.password_hash)) || row === undefined) return undefined;
    const { password_hash: passwordHash, ...member } = row;
    return { member, passwordHash };
  }

  /**
   * Changes a password, and ends every session of the member but one. False if the current password is wrong, also if
   * it was changed while the new one was hashed.
   * @param sessionId the session that stays
   */
  async changePassword(member: Member, current: string, next: string, sessionId: string): Promise<boolean> {
    const authenticated = await this.authenticate(member.email, current);
    if (authenticated === undefined) return false;
    const password_hash = await hashPassword(next);
    return this.db.transaction().execute(async (transaction) => {
      const changed = await transaction
        .updateTable('members')
        .set({ password_hash })
        .where('id', '=', member.id)
        .where('password_hash', '=', authenticated.passwordHash)
        .returning('id')
        .executeTakeFirst();
      if (changed === undefined) return false;
      await transaction
        .deleteFrom('member_sessions')
        .where('member_id', '=', member.id)
        .where('id', '<>', sessionId)
        .execute();
      await this.audit.add(actorOf(member), { action: 'changed the password', subject: member.email }, transaction);
      return true;
    });
  }

  /**
   * Changes the role of a member. The open invitations of the member end, because they may give more than the new role
   * allows.
   * @param isAllowed whether the actor may take away the present role of the member
   */
  async setRole(
    actor: Actor,
    id: string,
    role: MemberRole,
    isAllowed: (current: MemberRole) => boolean,
  ): Promise<MemberChange> {
    return this.#change(actor, id, isAllowed, role, async ({ name, role: before }, transaction) => {
      await transaction.updateTable('members').set({ role }).where('id', '=', id).execute();
      await transaction.deleteFrom('invitations').where('created_by', '=', id).where('used_at', 'is', null).execute();
      const subject = `${name}: ${before} to ${role}`;
      await this.audit.add(actor, { action: 'changed a role', subject, subjectId: id }, transaction);
    });
  }

  /** Removes a member with all sessions and open invitations. */
  async remove(actor: Actor, id: string, isAllowed: (current: MemberRole) => boolean): Promise<MemberChange> {
    return this.#change(actor, id, isAllowed, undefined, async ({ name, email }, transaction) => {
      await transaction.deleteFrom('members').where('id', '=', id).execute();
      // A member may also leave. Then the actor no longer exists.
      const by = actor.id === id ? { ...actor, id: null } : actor;
      const subject = `${name} (${email})`;
      await this.audit.add(by, { action: 'removed a member', subject, subjectId: id }, transaction);
    });
  }

  async #change(
    actor: Actor,
    id: string,
    isAllowed: (current: MemberRole) => boolean,
    next: MemberRole | undefined,
    change: (member: Member, transaction: Database) => Promise<void>,
  ): Promise<MemberChange> {
    if (!isId(id, 'mem')) return 'unknown';
    const { organizationId } = actor;
    return this.db.transaction().execute(async (transaction) => {
      await lockOrganization(organizationId, transaction);
      await holdRole(actor, transaction);
      const member = await transaction
        .selectFrom('members')
        .select(MEMBER_FIELDS)
        .where('organization_id', '=', organizationId)
        .where('id', '=', id)
        .executeTakeFirst();
      if (member === undefined) return 'unknown';
      if (!isAllowed(member.role)) return 'forbidden';
      const owners = member.role === 'owner' && next !== 'owner' ? await ownersOf(organizationId, transaction) : [];
      if (owners.length === 1) return 'last owner';
      await change(member, transaction);
      return 'changed';
    });
  }
}

const ownersOf = (organizationId: string, db: Database): Promise<readonly unknown[]> =>
  db
    .selectFrom('members')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('role', '=', 'owner')
    .limit(2)
    .execute();
