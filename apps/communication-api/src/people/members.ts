import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { MemberRow } from '../db/tables.ts';
import { isId } from '../domain/ids.ts';
import type { MemberRole } from '../domain/member-roles.ts';
import { hashPassword, isPassword } from '../security/passwords.ts';
import type { Actor, AuditLog } from './audit-log.ts';
import { type Authenticated, actorOf, MEMBER_FIELDS, type Member } from './member.ts';
import { endSessionsOf } from './member-sessions.ts';
import { holdRole, lockOrganization } from './organizations.ts';
import { removeSecondFactor } from './second-factors.ts';

/** A member in the list of an organization. */
export interface ListedMember extends Member {
  readonly hasSecondFactor: boolean;
}

/** The result of a change of a member. */
export type MemberChange = 'changed' | 'unknown' | 'forbidden' | 'last owner';

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
  async list(organizationId: string): Promise<readonly ListedMember[]> {
    return this.db
      .selectFrom('members')
      .select(MEMBER_FIELDS)
      .select(({ exists, selectFrom }) =>
        exists(selectFrom('second_factors').select('id').whereRef('member_id', '=', 'members.id'))
          .$castTo<boolean>()
          .as('hasSecondFactor'),
      )
      .where('organization_id', '=', organizationId)
      .orderBy('id', 'desc')
      .execute();
  }

  /** A member by its id, with the hash of its password. */
  async findWithHash(id: string): Promise<Authenticated | undefined> {
    const row = await this.db.selectFrom('members').selectAll().where('id', '=', id).executeTakeFirst();
    return row && withoutHash(row);
  }

  /** The member with an address and a password. An unknown address takes as long as a known one. */
  async authenticate(email: string, password: string): Promise<Authenticated | undefined> {
    const row = await this.db.selectFrom('members').selectAll().where('email', '=', email).executeTakeFirst();
    if (!(await isPassword(password, row?.password_hash)) || row === undefined) return undefined;
    return withoutHash(row);
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
      await endSessionsOf(member.id, transaction, sessionId);
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
    return this.#change(actor, id, isAllowed, role === 'owner', async ({ name, role: before }, transaction) => {
      await transaction.updateTable('members').set({ role }).where('id', '=', id).execute();
      await transaction.deleteFrom('invitations').where('created_by', '=', id).where('used_at', 'is', null).execute();
      const subject = `${name}: ${before} to ${role}`;
      await this.audit.add(actor, { action: 'changed a role', subject, subjectId: id }, transaction);
    });
  }

  /** Removes a member with all sessions and open invitations. */
  async remove(actor: Actor, id: string, isAllowed: (current: MemberRole) => boolean): Promise<MemberChange> {
    return this.#change(actor, id, isAllowed, false, async ({ name, email }, transaction) => {
      await transaction.deleteFrom('members').where('id', '=', id).execute();
      // A member may also leave. Then the actor no longer exists.
      const by = actor.id === id ? { ...actor, id: null } : actor;
      const subject = `${name} (${email})`;
      await this.audit.add(by, { action: 'removed a member', subject, subjectId: id }, transaction);
    });
  }

  /** Removes the second factor of a member who lost the device, and signs the member out everywhere. */
  async resetSecondFactor(
    actor: Actor,
    id: string,
    isAllowed: (current: MemberRole) => boolean,
  ): Promise<MemberChange> {
    return this.#change(actor, id, isAllowed, true, async ({ name, email }, transaction) => {
      if (!(await removeSecondFactor(id, transaction))) return;
      const subject = `${name} (${email})`;
      await this.audit.add(actor, { action: 'reset a second factor', subject, subjectId: id }, transaction);
    });
  }

  /** Ends every session of a member. */
  async signOut(actor: Actor, id: string, isAllowed: (current: MemberRole) => boolean): Promise<MemberChange> {
    return this.#change(actor, id, isAllowed, true, async ({ name, email }, transaction) => {
      await endSessionsOf(id, transaction);
      const subject = `${name} (${email})`;
      await this.audit.add(actor, { action: 'signed a member out', subject, subjectId: id }, transaction);
    });
  }

  /** @param keepsOwner whether an Owner is an Owner after the change, too */
  async #change(
    actor: Actor,
    id: string,
    isAllowed: (current: MemberRole) => boolean,
    keepsOwner: boolean,
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
      const owners = member.role === 'owner' && !keepsOwner ? await ownersOf(organizationId, transaction) : [];
      if (owners.length === 1) return 'last owner';
      await change(member, transaction);
      return 'changed';
    });
  }
}

const withoutHash = ({ password_hash: passwordHash, ...member }: Selectable<MemberRow>): Authenticated => ({
  member,
  passwordHash,
});

const ownersOf = (organizationId: string, db: Database): Promise<readonly unknown[]> =>
  db
    .selectFrom('members')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('role', '=', 'owner')
    .limit(2)
    .execute();
