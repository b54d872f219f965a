import { createHash, randomBytes } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import type { InvitationRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import type { MemberRole } from '../domain/member-roles.ts';
import { ServiceError } from '../domain/service-error.ts';
import { hashPassword } from '../security/passwords.ts';
import type { Actor, AuditLog } from './audit-log.ts';
import { type Authenticated, actorOf, MEMBER_FIELDS } from './member.ts';
import { endSessionsOf } from './member-sessions.ts';
import type { Members } from './members.ts';
import { holdRole, lockOrganization, OPERATOR, ORGANIZATION_ID } from './organizations.ts';

export type Invitation = Selectable<InvitationRow>;

const TOKEN_BYTES = 32;
const HOUR_MS = 3_600_000;
const INVITED_MS = 7 * 24 * HOUR_MS;

/** The entries of a person who becomes a member. */
export interface NewMember {
  readonly name: string;
  /** In lower case. */
  readonly email: string;
  readonly password: string;
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');

/** Links by which people become members. Each works once. */
export class Invitations {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly members: Members,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Makes a link for seven days. Its token is returned here and never again.
   * @throws ServiceError 409 if the link of the id was made already
   */
  async create(
    actor: Actor,
    { id, role, label }: { readonly id: string; readonly role: MemberRole; readonly label: string },
  ): Promise<string> {
    return this.#create(actor, { id, kind: 'member', role, label, lastsMs: INVITED_MS });
  }

  /** Makes the link for the first owner, for one hour. Undefined if there is an owner already. */
  async createSetUpLink(): Promise<string | undefined> {
    if (await this.members.hasOwner(ORGANIZATION_ID)) return undefined;
    return this.#create(OPERATOR, { kind: 'setup', role: 'owner', label: 'First owner', lastsMs: HOUR_MS });
  }

  /** Makes a link for an owner, for one hour. It also gives a new password to a login that exists. */
  async createOwnerLink(): Promise<string> {
    return this.#create(OPERATOR, { kind: 'operator', role: 'owner', label: 'Owner', lastsMs: HOUR_MS });
  }

  /** The invitation of a token, if it can still be used. */
  async find(token: string, db: Database = this.db): Promise<Invitation | undefined> {
    const invitation = await db
      .selectFrom('invitations')
      .selectAll()
      .where('token_hash', '=', hashOf(token))
      .where('used_at', 'is', null)
      .where('expires_at', '>', new Date(this.clock()))
      .executeTakeFirst();
    // A set-up link that was printed by an earlier start would make a second first owner.
    if (invitation?.kind === 'setup' && (await this.members.hasOwner(invitation.organization_id, db))) return undefined;
    return invitation;
  }

  /** Makes a person a member. `taken`: another login uses the address; the link stays open. */
  async accept(token: string, { name, email, password }: NewMember): Promise<Authenticated | 'gone' | 'taken'> {
    const open = await this.find(token);
    if (open === undefined) return 'gone';
    const password_hash = await hashPassword(password);
    return this.db.transaction().execute(async (transaction) => {
      await lockOrganization(open.organization_id, transaction);
      const invitation = await this.find(token, transaction);
      if (invitation === undefined) return 'gone';
      const { organization_id, role, kind } = invitation;
      const now = this.clock();
      const login = { role, name, password_hash };
      const member = await transaction
        .insertInto('members')
        .values({ id: newId('mem', now), organization_id, email, ...login, created_at: new Date(now) })
        .onConflict((conflict) =>
          // The operator may do everything anyway, so this link also replaces a password that was forgotten.
          kind === 'operator' ? conflict.column('email').doUpdateSet(login) : conflict.column('email').doNothing(),
        )
        .returning(MEMBER_FIELDS)
        .executeTakeFirst();
      if (member === undefined) return 'taken';
      await endSessionsOf(member.id, transaction);
      await transaction
        .updateTable('invitations')
        .set({ used_at: new Date(now) })
        .where('id', '=', invitation.id)
        .execute();
      const subject = `${name} (${email}) as ${role}`;
      await this.audit.add(actorOf(member), { action: 'joined', subject, subjectId: member.id }, transaction);
      return { member, passwordHash: password_hash };
    });
  }

  /** The links of members that can still be used, the newest first. */
  async list(organizationId: string): Promise<readonly Invitation[]> {
    return this.db
      .selectFrom('invitations')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('kind', '=', 'member')
      .where('used_at', 'is', null)
      .where('expires_at', '>', new Date(this.clock()))
      .orderBy('id', 'desc')
      .execute();
  }

  /**
   * Takes a link back.
   * @param isAllowed whether the actor may withdraw a link to a role
   */
  async withdraw(
    actor: Actor,
    id: string,
    isAllowed: (role: MemberRole) => boolean,
  ): Promise<'withdrawn' | 'unknown' | 'forbidden'> {
    if (!isId(id, 'inv')) return 'unknown';
    return this.db.transaction().execute(async (transaction) => {
      // A person who uses the link at this moment was first, or comes too late.
      await lockOrganization(actor.organizationId, transaction);
      await holdRole(actor, transaction);
      const invitation = await transaction
        .selectFrom('invitations')
        .selectAll()
        .where('organization_id', '=', actor.organizationId)
        .where('id', '=', id)
        .where('kind', '=', 'member')
        .where('used_at', 'is', null)
        .executeTakeFirst();
      if (invitation === undefined) return 'unknown';
      if (!isAllowed(invitation.role)) return 'forbidden';
      await transaction.deleteFrom('invitations').where('id', '=', id).execute();
      const subject = `${invitation.label} as ${invitation.role}`;
      await this.audit.add(actor, { action: 'withdrew an invitation', subject, subjectId: id }, transaction);
      return 'withdrawn';
    });
  }

  /** Deletes at most so many links a week after their end. Returns how many. */
  async deleteOld(limit: number): Promise<number> {
    const old = this.db
      .selectFrom('invitations')
      .select('id')
      .where('expires_at', '<', new Date(this.clock() - INVITED_MS))
      .limit(limit);
    const { numDeletedRows } = await this.db.deleteFrom('invitations').where('id', 'in', old).executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }

  async #create(
    actor: Actor,
    {
      id = newId('inv', this.clock()),
      kind,
      role,
      label,
      lastsMs,
    }: Pick<Invitation, 'kind' | 'role' | 'label'> & { readonly id?: string; readonly lastsMs: number },
  ): Promise<string> {
    const now = this.clock();
    const token = randomBytes(TOKEN_BYTES).toString('base64url');
    await this.db.transaction().execute(async (transaction) => {
      await holdRole(actor, transaction);
      const made = await transaction
        .insertInto('invitations')
        .values({
          id,
          organization_id: actor.organizationId,
          token_hash: hashOf(token),
          kind,
          role,
          label,
          created_by: actor.id,
          expires_at: new Date(now + lastsMs),
          created_at: new Date(now),
        })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .returning('id')
        .executeTakeFirst();
      if (made === undefined) throw new ServiceError(409, 'errors/already_exists', 'This link was made already.');
      const deed =
        kind === 'member'
          ? { action: 'invited' as const, subject: `${label} as ${role}` }
          : { action: 'created an owner link' as const, subject: label };
      await this.audit.add(actor, { ...deed, subjectId: id }, transaction);
    });
    return token;
  }
}
