import { type Selectable, sql } from 'kysely';
import type { Database } from '../db/database.ts';
import type { SecondFactorRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { Envelope } from '../security/envelope.ts';
import { hashRecoveryCode, newRecoveryCodes } from '../security/recovery-codes.ts';
import { SealedTokens } from '../security/sealed-tokens.ts';
import { newTotpSecret, stepOfCode } from '../security/totp.ts';
import type { AuditLog } from './audit-log.ts';
import { actorOf, MEMBER_FIELDS, type Member } from './member.ts';
import { endSessionsOf } from './member-sessions.ts';
import { OPERATOR } from './organizations.ts';

/** The second factor of a member, without its secret. */
export interface SecondFactor {
  readonly id: string;
  readonly createdAt: Date;
  /** Recovery codes that were not used. */
  readonly recoveryCodes: number;
}

/** A secret that a member was shown, until its first code confirms it. It is stored nowhere. */
export interface Offer {
  /** Of the second factor that it becomes. */
  readonly id: string;
  readonly secret: Uint8Array;
  /** The offer, sealed, for the form that confirms it. */
  readonly token: string;
}

const OFFERED_MS = 30 * 60_000;

/** Codes of an app (RFC 6238), and recovery codes, which members enter beside their password. */
export class SecondFactors {
  readonly #tokens: SealedTokens;

  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    private readonly envelope: Envelope,
    private readonly audit: AuditLog,
  ) {
    this.#tokens = new SealedTokens([envelope.derive('second-factor')]);
  }

  async find(memberId: string): Promise<SecondFactor | undefined> {
    const row = await rowOf(memberId, this.db);
    return row && { id: row.id, createdAt: row.created_at, recoveryCodes: row.recovery_hashes.length };
  }

  /** A new secret for a member. It counts only after {@link setUp}. */
  offer(memberId: string): Offer {
    const [now, secret] = [this.clock(), newTotpSecret()];
    const id = newId('sfa', now);
    const values = [memberId, id, Buffer.from(secret).toString('base64url'), now + OFFERED_MS];
    return { id, secret, token: this.#tokens.seal('offer', values) };
  }

  /**
   * The offer of a form. Undefined if it was made for another member, or half an hour ago.
   * @throws ServiceError 409 if it is the member's second factor already
   */
  async openOffer(memberId: string, token: string): Promise<Offer | undefined> {
    const [owner, id, secret, endsMs] = this.#tokens.open('offer', token) ?? [];
    if (owner !== memberId || Number(endsMs) <= this.clock()) return undefined;
    if ((await rowOf(memberId, this.db))?.id === id) throw doneAlready();
    return { id: String(id), secret: Buffer.from(String(secret), 'base64url'), token };
  }

  /** The time step of a code of an offer. Undefined: the code is wrong. */
  stepOf({ secret }: Offer, code: string): number | undefined {
    return stepOfCode(secret, code, this.clock());
  }

  /**
   * Makes an offer the member's second factor, and ends every session of the member but one.
   * @param step of the first code, which does not count again
   * @param replaces the id of the second factor that the member proved; undefined: there was none
   * @returns the recovery codes. They are returned here and never again
   * @throws ServiceError 409 if this was done already; 403 if another second factor was set up meanwhile
   */
  async setUp(
    member: Member,
    { id, secret }: Offer,
    {
      step,
      replaces,
      sessionId,
    }: { readonly step: number; readonly replaces: string | undefined; readonly sessionId: string },
  ): Promise<readonly string[]> {
    const codes = newRecoveryCodes();
    const values = {
      ...{ id, last_step: step, recovery_hashes: hashesOf(member, codes), created_at: new Date(this.clock()) },
      secret: this.envelope.seal(placeOf(member.id), secret),
    };
    await this.db.transaction().execute(async (transaction) => {
      await lockMember(member.id, transaction);
      const before = await rowOf(member.id, transaction);
      if (before?.id === id) throw doneAlready();
      if (before?.id !== replaces) throw changedMeanwhile();
      await transaction
        .insertInto('second_factors')
        .values({ member_id: member.id, ...values })
        .onConflict((conflict) => conflict.column('member_id').doUpdateSet(values))
        .execute();
      // They began without a code of this factor.
      await endSessionsOf(member.id, transaction, sessionId);
      const action = before === undefined ? 'set up the second factor' : 'changed the second factor';
      await this.audit.add(actorOf(member), { action, subject: member.email }, transaction);
    });
    return codes;
  }

  /**
   * Uses a code of the app, or a recovery code. Each is accepted once, also if two requests send it at the same time.
   * @returns the id of the second factor; undefined: the code is wrong, or was used
   */
  async use(member: Member, code: string): Promise<string | undefined> {
    const row = await rowOf(member.id, this.db);
    if (row === undefined) return undefined;
    const step = stepOfCode(this.envelope.open(placeOf(member.id), row.secret), code, this.clock());
    const isUsed = step === undefined ? await this.#useRecoveryCode(member, code) : await this.#useStep(row, step);
    return isUsed ? row.id : undefined;
  }

  /** @returns the new codes, which replace the earlier ones. They are returned here and never again */
  async renewRecoveryCodes(member: Member, id: string): Promise<readonly string[]> {
    const codes = newRecoveryCodes();
    await this.db.transaction().execute(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('second_factors')
        .set({ recovery_hashes: hashesOf(member, codes) })
        .where('member_id', '=', member.id)
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) throw changedMeanwhile();
      await this.audit.add(actorOf(member), { action: 'made new recovery codes', subject: member.email }, transaction);
    });
    return codes;
  }

  /** Turns off the second factor that the member proved. */
  async turnOff(member: Member, id: string): Promise<void> {
    await this.db.transaction().execute(async (transaction) => {
      const { numDeletedRows } = await transaction
        .deleteFrom('second_factors')
        .where('member_id', '=', member.id)
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      if (numDeletedRows === 0n) throw changedMeanwhile();
      const deed = { action: 'turned off the second factor' as const, subject: member.email };
      await this.audit.add(actorOf(member), deed, transaction);
    });
  }

  /** Removes the second factor of a login, and ends its sessions: for the operator, at the command line. */
  async resetByOperator(email: string): Promise<'reset' | 'unknown login' | 'no second factor'> {
    return this.db.transaction().execute(async (transaction) => {
      const member = await transaction
        .selectFrom('members')
        .select(MEMBER_FIELDS)
        .where('email', '=', email)
        .executeTakeFirst();
      if (member === undefined) return 'unknown login';
      if (!(await removeSecondFactor(member.id, transaction))) return 'no second factor';
      const subject = `${member.name} (${email})`;
      const deed = { action: 'reset a second factor' as const, subject, subjectId: member.id };
      await this.audit.add(OPERATOR, deed, transaction);
      return 'reset';
    });
  }

  async #useStep({ member_id, id }: Selectable<SecondFactorRow>, step: number): Promise<boolean> {
    const { numUpdatedRows } = await this.db
      .updateTable('second_factors')
      .set({ last_step: step })
      .where('member_id', '=', member_id)
      .where('id', '=', id)
      .where('last_step', '<', step)
      .executeTakeFirstOrThrow();
    return numUpdatedRows === 1n;
  }

  async #useRecoveryCode(member: Member, code: string): Promise<boolean> {
    const hash = hashRecoveryCode(member.id, code);
    return this.db.transaction().execute(async (transaction) => {
      const row = await transaction
        .updateTable('second_factors')
        .set({ recovery_hashes: sql`array_remove(recovery_hashes, ${hash}::text)` })
        .where('member_id', '=', member.id)
        .where(sql<boolean>`${hash}::text = any(recovery_hashes)`)
        .returning('recovery_hashes')
        .executeTakeFirst();
      if (row === undefined) return false;
      const subject = `${member.email}: ${row.recovery_hashes.length} left`;
      await this.audit.add(actorOf(member), { action: 'used a recovery code', subject }, transaction);
      return true;
    });
  }
}

/** Removes the second factor of a member, and ends the sessions that it had opened. Returns whether there was one. */
export async function removeSecondFactor(memberId: string, transaction: Database): Promise<boolean> {
  await lockMember(memberId, transaction);
  const { numDeletedRows } = await transaction
    .deleteFrom('second_factors')
    .where('member_id', '=', memberId)
    .executeTakeFirstOrThrow();
  if (numDeletedRows === 0n) return false;
  // The device may be in the hands of another person.
  await endSessionsOf(memberId, transaction);
  return true;
}

const rowOf = (memberId: string, db: Database): Promise<Selectable<SecondFactorRow> | undefined> =>
  db.selectFrom('second_factors').selectAll().where('member_id', '=', memberId).executeTakeFirst();

/** A session that begins at this moment waits, and then needs the new factor. */
const lockMember = (id: string, transaction: Database): Promise<unknown> =>
  transaction.selectFrom('members').select('id').where('id', '=', id).forNoKeyUpdate().execute();

const placeOf = (memberId: string): string => `second_factors/${memberId}/secret`;

const hashesOf = ({ id }: Member, codes: readonly string[]): string[] =>
  codes.map((code) => hashRecoveryCode(id, code));

const doneAlready = (): ServiceError => new ServiceError(409, 'errors/already_exists', 'This was done already.');

const changedMeanwhile = (): ServiceError =>
  new ServiceError(403, 'errors/session_mismatch', 'The second factor was changed meanwhile.');
