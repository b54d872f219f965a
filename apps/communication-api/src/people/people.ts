import { type Database, inTransaction } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import type { Envelope } from '../security/envelope.ts';
import { type Actor, AuditLog, type Deed } from './audit-log.ts';
import { Invitations } from './invitations.ts';
import { MemberSessions } from './member-sessions.ts';
import { Members } from './members.ts';
import { holdRole, Organizations } from './organizations.ts';
import { PendingSignIns } from './pending-sign-ins.ts';
import { SecondFactors } from './second-factors.ts';

/** Who may use the dashboard, and the log of their actions. */
export interface People {
  readonly organizations: Organizations;
  readonly members: Members;
  readonly sessions: MemberSessions;
  readonly secondFactors: SecondFactors;
  readonly pendingSignIns: PendingSignIns;
  readonly invitations: Invitations;
  readonly audit: AuditLog;
  /**
   * Runs an action and notes it in the audit log. Neither happens without the other.
   * @throws ServiceError 403 if the actor lost the role since the beginning of the request
   * @param work gets the transaction, and returns its result with the deed to note
   */
  audited<Result>(
    actor: Actor,
    work: (transaction: Database) => Promise<readonly [Result, Deed | undefined]>,
  ): Promise<Result>;
}

export function createPeople(db: Database, clock: Clock, envelope: Envelope): People {
  const audit = new AuditLog(db, clock);
  const members = new Members(db, audit);
  return {
    audit,
    members,
    organizations: new Organizations(db, audit),
    sessions: new MemberSessions(db, clock, audit),
    secondFactors: new SecondFactors(db, clock, envelope, audit),
    pendingSignIns: new PendingSignIns(envelope, clock, members),
    invitations: new Invitations(db, clock, members, audit),
    audited: (actor, work) =>
      inTransaction(db, async (transaction) => {
        await holdRole(actor, transaction);
        const [result, deed] = await work(transaction);
        if (deed !== undefined) await audit.add(actor, deed, transaction);
        return result;
      }),
  };
}
