import { createHash, randomBytes } from 'node:crypto';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { AuditLog } from './audit-log.ts';
import { actorOf, MEMBER_FIELDS, type Member } from './members.ts';

const COOKIE_BYTES = 32;
const HOUR_MS = 3_600_000;
/** A session ends this long after its last use. */
const IDLE_MS = 12 * HOUR_MS;
/** A session ends this long after the sign-in. */
export const SESSION_MS = 7 * 24 * HOUR_MS;
/** The last use is written at most this often. */
const NOTE_MS = 60_000;

/** A session and the person who signed in. */
export interface MemberSession {
  readonly id: string;
  readonly member: Member;
}

const hashOf = (cookie: string): string => createHash('sha256').update(cookie).digest('hex');

/** The browsers in which people signed in. */
export class MemberSessions {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Starts a session. Its cookie is returned here and never again.
   * @param passwordHash of the password that was entered. Default: the member did not need one
   * @throws ServiceError 403 if the member was removed, or got another password, since it was entered
   */
  async create(member: Member, passwordHash?: string): Promise<string> {
    const now = this.clock();
    const cookie = randomBytes(COOKIE_BYTES).toString('base64url');
    await this.db.transaction().execute(async (transaction) => {
      // A new password ends all sessions. It waits for this one, or was first.
      const row = await transaction
        .selectFrom('members')
        .select('password_hash')
        .where('id', '=', member.id)
        .forShare()
        .executeTakeFirst();
      if (row === undefined || (passwordHash !== undefined && row.password_hash !== passwordHash))
        throw new ServiceError(403, 'errors/session_mismatch', 'The login was changed meanwhile.');
      await transaction
        .insertInto('member_sessions')
        .values({
          id: newId('mss', now),
          member_id: member.id,
          cookie_hash: hashOf(cookie),
          created_at: new Date(now),
          last_used_at: new Date(now),
        })
        .execute();
      await this.audit.add(actorOf(member), { action: 'signed in', subject: member.email }, transaction);
    });
    return cookie;
  }

  /** The session of a cookie. Undefined if it ended, or if its member was removed. */
  async resolve(cookie: string): Promise<MemberSession | undefined> {
    const now = this.clock();
    const row = await this.db
      .selectFrom('member_sessions as session')
      .innerJoin('members as member', 'member.id', 'session.member_id')
      .select(['session.id as session_id', 'session.last_used_at'])
      .select(MEMBER_FIELDS.map((field) => `member.${field}` as const))
      .where('session.cookie_hash', '=', hashOf(cookie))
      .where('session.created_at', '>', new Date(now - SESSION_MS))
      .where('session.last_used_at', '>', new Date(now - IDLE_MS))
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const { session_id: id, last_used_at, ...member } = row;
    if (last_used_at.getTime() <= now - NOTE_MS)
      await this.db
        .updateTable('member_sessions')
        .set({ last_used_at: new Date(now) })
        .where('id', '=', id)
        .execute();
    return { id, member };
  }

  async end(id: string): Promise<void> {
    await this.db.deleteFrom('member_sessions').where('id', '=', id).execute();
  }

  /** Deletes at most so many ended sessions. Returns how many. */
  async deleteOld(limit: number): Promise<number> {
    const ended = this.db
      .selectFrom('member_sessions')
      .select('id')
      .where('last_used_at', '<', new Date(this.clock() - SESSION_MS))
      .limit(limit);
    const { numDeletedRows } = await this.db
      .deleteFrom('member_sessions')
      .where('id', 'in', ended)
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}
