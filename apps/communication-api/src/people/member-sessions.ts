import { createHash, randomBytes } from 'node:crypto';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { AuditLog } from './audit-log.ts';
import { actorOf, MEMBER_FIELDS, type Member } from './member.ts';

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
  readonly hasSecondFactor: boolean;
}

/** The browser of a sign-in. */
export interface SignInPlace {
  /** The address of the client. */
  readonly address?: string | undefined;
  /** Its name and its system, such as `Firefox on Linux`. */
  readonly browser?: string | undefined;
}

/** The proofs of a person who signs in. */
export interface Proofs {
  /** The hash of the password that was entered. Default: the member did not need one. */
  readonly passwordHash?: string;
  /** Whether a code of the second factor was entered. Default: no. */
  readonly hasCode?: boolean;
}

/** A session in a list. */
export interface ListedSession extends SignInPlace {
  readonly id: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date;
}

/** Most sessions in a list, the newest. */
const MAX_LISTED = 100;

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
   * @throws ServiceError 403 if the member was removed, got another password since it was entered, or has a second
   * factor of which no code was entered
   */
  async create(
    member: Member,
    { passwordHash, hasCode = false }: Proofs = {},
    { address, browser }: SignInPlace = {},
  ): Promise<string> {
    const now = this.clock();
    const cookie = randomBytes(COOKIE_BYTES).toString('base64url');
    await this.db.transaction().execute(async (transaction) => {
      // A new password or second factor ends all sessions. It waits for this one, or was first.
      const row = await transaction
        .selectFrom('members')
        .select('password_hash')
        .where('id', '=', member.id)
        .forShare()
        .executeTakeFirst();
      if (row === undefined || (passwordHash !== undefined && row.password_hash !== passwordHash))
        throw changedMeanwhile();
      const factor = transaction.selectFrom('second_factors').select('id').where('member_id', '=', member.id);
      if (!hasCode && (await factor.executeTakeFirst()) !== undefined) throw changedMeanwhile();
      await transaction
        .insertInto('member_sessions')
        .values({
          id: newId('mss', now),
          member_id: member.id,
          cookie_hash: hashOf(cookie),
          created_at: new Date(now),
          last_used_at: new Date(now),
          address: address ?? null,
          browser: browser ?? null,
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
      .leftJoin('second_factors as factor', 'factor.member_id', 'member.id')
      .select(['session.id as session_id', 'session.last_used_at', 'factor.id as factor_id'])
      .select(MEMBER_FIELDS.map((field) => `member.${field}` as const))
      .where('session.cookie_hash', '=', hashOf(cookie))
      .where('session.created_at', '>', new Date(now - SESSION_MS))
      .where('session.last_used_at', '>', new Date(now - IDLE_MS))
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const { session_id: id, last_used_at, factor_id, ...member } = row;
    if (last_used_at.getTime() <= now - NOTE_MS)
      await this.db
        .updateTable('member_sessions')
        .set({ last_used_at: new Date(now) })
        .where('id', '=', id)
        .execute();
    return { id, member, hasSecondFactor: factor_id !== null };
  }

  async end(id: string): Promise<void> {
    await this.db.deleteFrom('member_sessions').where('id', '=', id).execute();
  }

  /** The newest sessions of a member that have not ended. */
  async list(memberId: string): Promise<readonly ListedSession[]> {
    const now = this.clock();
    const rows = await this.db
      .selectFrom('member_sessions')
      .select(['id', 'created_at', 'last_used_at', 'address', 'browser'])
      .where('member_id', '=', memberId)
      .where('created_at', '>', new Date(now - SESSION_MS))
      .where('last_used_at', '>', new Date(now - IDLE_MS))
      .orderBy('id', 'desc')
      .limit(MAX_LISTED)
      .execute();
    return rows.map(({ id, created_at, last_used_at, address, browser }) => ({
      ...{ id, createdAt: created_at, lastUsedAt: last_used_at },
      ...{ address: address ?? undefined, browser: browser ?? undefined },
    }));
  }

  /** Ends a session of a member. False if it ended before, or belongs to another member. */
  async endOwn(member: Member, id: string): Promise<boolean> {
    if (!isId(id, 'mss')) return false;
    return this.db.transaction().execute(async (transaction) => {
      const ended = await transaction
        .deleteFrom('member_sessions')
        .where('id', '=', id)
        .where('member_id', '=', member.id)
        .returning(['address', 'browser'])
        .executeTakeFirst();
      if (ended === undefined) return false;
      const place = [ended.browser, ended.address].filter((part) => part !== null).join(', ');
      const subject = place === '' ? member.email : `${member.email}: ${place}`;
      await this.audit.add(actorOf(member), { action: 'ended a session', subject }, transaction);
      return true;
    });
  }

  /** Ends every session of a member but one. */
  async endOthers(member: Member, sessionId: string): Promise<void> {
    await this.db.transaction().execute(async (transaction) => {
      await endSessionsOf(member.id, transaction, sessionId);
      await this.audit.add(actorOf(member), { action: 'ended other sessions', subject: member.email }, transaction);
    });
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

/**
 * Ends the sessions of a member.
 * @param but the session that stays. Default: none
 */
export async function endSessionsOf(memberId: string, db: Database, but = ''): Promise<void> {
  await db.deleteFrom('member_sessions').where('member_id', '=', memberId).where('id', '<>', but).execute();
}

const changedMeanwhile = (): ServiceError =>
  new ServiceError(403, 'errors/session_mismatch', 'The login was changed meanwhile.');
