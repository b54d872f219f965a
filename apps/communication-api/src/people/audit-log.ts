import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { AuditRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { firstIdAt, newId } from '../domain/ids.ts';
import type { MemberRole } from '../domain/member-roles.ts';
import type { Page } from '../domain/page.ts';

export type AuditEntry = Selectable<AuditRow>;

/** The person who does something. */
export interface Actor {
  /** Null: the operator, at the command line. */
  readonly id: string | null;
  readonly organizationId: string;
  readonly name: string;
  /** At the beginning of the request; null: the operator, who may do everything. */
  readonly role: MemberRole | null;
}

/** The actions of people. */
export type AuditAction =
  | 'signed in'
  | 'joined'
  | 'changed the password'
  | 'set up the second factor'
  | 'changed the second factor'
  | 'turned off the second factor'
  | 'made new recovery codes'
  | 'used a recovery code'
  | 'reset a second factor'
  | 'changed who needs a second factor'
  | 'ended a session'
  | 'ended other sessions'
  | 'signed a member out'
  | 'created an application'
  | 'created a service key'
  | 'created an account key'
  | 'revoked a service key'
  | 'revoked an account key'
  | 'invited'
  | 'withdrew an invitation'
  | 'changed a role'
  | 'removed a member'
  | 'renamed the organization'
  | 'created an owner link'
  | 'adjusted a limit'
  | 'reset a limit'
  | 'reset counters'
  | 'made a link to reconnect'
  | 'paused an account'
  | 'resumed an account'
  | 'removed an account'
  | 'resolved an email'
  | 'created a webhook endpoint'
  | 'changed a webhook endpoint'
  | 'enabled a webhook endpoint'
  | 'disabled a webhook endpoint'
  | 'deleted a webhook endpoint'
  | 'made a new secret for a webhook endpoint'
  | 'sent a test event'
  | 'redelivered an event'
  | 'created a scope'
  | 'changed a scope'
  | 'enabled a scope'
  | 'disabled a scope'
  | 'deleted a scope'
  | 'added a domain'
  | 'checked a domain'
  | 'removed a domain';

/** One action and its object. */
export interface Deed {
  readonly action: AuditAction;
  /** In words. Never a secret. */
  readonly subject: string;
  readonly subjectId?: string | undefined;
  readonly applicationId?: string | undefined;
}

const KEPT_MS = 400 * 86_400_000;

/** The actions of people in an organization. */
export class AuditLog {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  /** Notes an action. `db` is the transaction of the action, so that neither is stored without the other. */
  async add(actor: Actor, deed: Deed, db: Database): Promise<void> {
    await db.insertInto('audit_log').values(this.entryOf(actor, deed)).execute();
  }

  /** The row of an entry. */
  entryOf(actor: Actor, { action, subject, subjectId, applicationId }: Deed) {
    const now = this.clock();
    return {
      id: newId('aud', now),
      organization_id: actor.organizationId,
      actor_id: actor.id,
      actor: actor.name,
      action,
      subject,
      subject_id: subjectId ?? null,
      application_id: applicationId ?? null,
      at: new Date(now),
    };
  }

  /** One page, and the first entry of the next page if there is one. */
  async list(organizationId: string, page: Page): Promise<readonly AuditEntry[]> {
    return this.db
      .selectFrom('audit_log')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .$call(onPage(page))
      .execute();
  }

  /** Deletes at most so many entries whose time is over. Returns how many. */
  async deleteOld(limit: number): Promise<number> {
    const old = this.db
      .selectFrom('audit_log')
      .select('id')
      .where('id', '<', firstIdAt('aud', this.clock() - KEPT_MS))
      .limit(limit);
    const { numDeletedRows } = await this.db.deleteFrom('audit_log').where('id', 'in', old).executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}
