import type { Selectable } from 'kysely';
import type { MemberRow } from '../db/tables.ts';
import type { Actor } from './audit-log.ts';

/** A person with a login, without the hash of the password. */
export type Member = Omit<Selectable<MemberRow>, 'password_hash'>;

export const MEMBER_FIELDS = ['id', 'organization_id', 'role', 'email', 'name', 'created_at'] as const;

/** A member who entered the right password, and the stored hash of this password. */
export interface Authenticated {
  readonly member: Member;
  readonly passwordHash: string;
}

export const actorOf = ({ id, organization_id, name, role }: Member): Actor => ({
  id,
  organizationId: organization_id,
  name,
  role,
});
