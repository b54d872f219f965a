import { randomBytes } from 'node:crypto';
import { type Selectable, sql } from 'kysely';
import { countInTurn } from '../db/count.ts';
import type { Database } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { WebhookEndpointRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { type EventType, triggersOf } from '../domain/event-types.ts';
import { isId, newId } from '../domain/ids.ts';
import type { Page } from '../domain/page.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { Queue } from '../jobs/queue.ts';
import type { Envelope } from '../security/envelope.ts';

/** An endpoint. Its secrets are sealed, and nothing but `secretsOf` opens them. */
export type Endpoint = Selectable<WebhookEndpointRow>;

/** Why the service disables an endpoint: it answers 410, or it has failed for five days. */
export type DisabledReason = NonNullable<Endpoint['disabled_reason']>;

/** What a client says about an endpoint. */
export interface EndpointFields {
  readonly url: string;
  /** Types of events, and patterns such as `account.*`. */
  readonly triggerEvents: readonly string[];
  /** Only events of these accounts; null: of all, and those without an account. */
  readonly accountIds: readonly string[] | null;
  readonly description: string | null;
  readonly enabled: boolean;
}

/** Sealed beside the endpoint. */
interface Secrets {
  readonly current: string;
  /** The secret before the last rotation, and until when (in ms since 1970) it signs, too. */
  readonly previous?: { readonly secret: string; readonly until: number };
}

/** The kind of the jobs that deliver an event to an endpoint: the lane is the endpoint, the subject the event. */
export const WEBHOOK_JOB = 'webhook';
/** Each event costs a look at every endpoint of its application. */
export const MAX_ENDPOINTS = 50;
/** How long the secret of before a rotation signs, too. */
const ROTATION_MS = 86_400_000;
const SECRET_BYTES = 32;

const newSecret = (): string => `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
const place = (id: string): string => `webhook_endpoints/${id}/secrets`;

/** Where applications receive their events. */
export class Endpoints {
  constructor(
    private readonly db: Database,
    private readonly envelope: Envelope,
    private readonly clock: Clock,
    private readonly queue: Pick<Queue, 'clear'>,
  ) {}

  /**
   * Creates an endpoint. Its secret is returned here and never again.
   * @throws ServiceError 404 if an account is unknown, 409 if the application has too many endpoints
   */
  async create(
    applicationId: string,
    fields: EndpointFields,
  ): Promise<{ readonly endpoint: Endpoint; readonly secret: string }> {
    const now = this.clock();
    const id = newId('whe', now);
    const secret = newSecret();
    const endpoint = await this.db.transaction().execute(async (trx) => {
      if ((await countInTurn(applicationId, 'webhook_endpoints', trx)) >= MAX_ENDPOINTS)
        throw new ServiceError(
          409,
          'errors/conflict',
          `Your application has ${MAX_ENDPOINTS} endpoints, which is the limit. Delete one first.`,
        );
      await this.#checkAccounts(applicationId, fields.accountIds, trx);
      return trx
        .insertInto('webhook_endpoints')
        .values({
          id,
          application_id: applicationId,
          ...columnsOf(fields),
          secrets: this.#seal(id, { current: secret }),
          created_at: new Date(now),
        })
        .returningAll()
        .executeTakeFirstOrThrow();
    });
    return { endpoint, secret };
  }

  /** One page, and the first entry of the next page if there is one. */
  async list(applicationId: string, page: Page): Promise<readonly Endpoint[]> {
    return this.db
      .selectFrom('webhook_endpoints')
      .selectAll()
      .where('application_id', '=', applicationId)
      .$call(onPage(page))
      .execute();
  }

  async find(applicationId: string, id: string): Promise<Endpoint | undefined> {
    if (!isId(id, 'whe')) return undefined;
    return this.db
      .selectFrom('webhook_endpoints')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .executeTakeFirst();
  }

  /** The ids of the enabled endpoints that take an event of this type and account. */
  async subscribers(
    applicationId: string,
    type: EventType,
    accountId: string | null,
    db: Pick<Database, 'selectFrom'>,
  ): Promise<readonly string[]> {
    const rows = await db
      .selectFrom('webhook_endpoints')
      .select('id')
      .where('application_id', '=', applicationId)
      .where('enabled', '=', true)
      .where(sql<boolean>`trigger_events && ${triggersOf(type)}::text[]`)
      .where(sql<boolean>`(account_ids is null or ${accountId}::text = any(account_ids))`)
      .execute();
    return rows.map(({ id }) => id);
  }

  /**
   * Changes what is given. Events that wait for an endpoint that is disabled are dropped, and one that is enabled again
   * has no failures. Undefined if the endpoint does not exist.
   * @throws ServiceError 404 if an account is unknown
   */
  async update(
    applicationId: string,
    id: string,
    changes: { readonly [Field in keyof EndpointFields]?: EndpointFields[Field] | undefined },
  ): Promise<Endpoint | undefined> {
    const columns = columnsOf(changes);
    if (Object.keys(columns).length === 0) return this.find(applicationId, id);
    if (!isId(id, 'whe')) return undefined;
    return this.db.transaction().execute(async (trx) => {
      await this.#checkAccounts(applicationId, changes.accountIds ?? null, trx);
      if (changes.enabled === false) await this.queue.clear(applicationId, WEBHOOK_JOB, id, trx);
      return trx
        .updateTable('webhook_endpoints')
        .set(columns)
        .$if(changes.enabled !== undefined, (query) => query.set({ disabled_reason: null, failing_since: null }))
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst();
    });
  }

  /** Deletes an endpoint, with the events that wait for it. False if it does not exist. */
  async remove(applicationId: string, id: string): Promise<boolean> {
    if (!isId(id, 'whe')) return false;
    return this.db.transaction().execute(async (trx) => {
      const row = await trx
        .deleteFrom('webhook_endpoints')
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .returning('id')
        .executeTakeFirst();
      await this.queue.clear(applicationId, WEBHOOK_JOB, id, trx);
      return row !== undefined;
    });
  }

  /**
   * Makes a new secret, which is returned here and never again. For 24 hours, the secret of before signs as well.
   * Undefined if the endpoint does not exist.
   */
  async rotateSecret(
    applicationId: string,
    id: string,
  ): Promise<{ readonly secret: string; readonly previousUntil: Date } | undefined> {
    if (!isId(id, 'whe')) return undefined;
    const secret = newSecret();
    const until = this.clock() + ROTATION_MS;
    return this.db.transaction().execute(async (trx) => {
      const row = await trx
        .selectFrom('webhook_endpoints')
        .select('secrets')
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .forUpdate()
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const { current } = this.#open(id, row.secrets);
      await trx
        .updateTable('webhook_endpoints')
        .set({ secrets: this.#seal(id, { current: secret, previous: { secret: current, until } }) })
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .execute();
      return { secret, previousUntil: new Date(until) };
    });
  }

  /** The secrets that sign now: the current one first. */
  secretsOf({ id, secrets }: Endpoint): readonly string[] {
    const { current, previous } = this.#open(id, secrets);
    return previous !== undefined && previous.until > this.clock() ? [current, previous.secret] : [current];
  }

  /** Notes that an endpoint has failed. @returns the time of its first failure since its last success */
  async failed(applicationId: string, id: string): Promise<Date | undefined> {
    const row = await this.db
      .updateTable('webhook_endpoints')
      .set(({ fn, val }) => ({ failing_since: fn.coalesce('failing_since', val(new Date(this.clock()))) }))
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .returning('failing_since')
      .executeTakeFirst();
    return row?.failing_since ?? undefined;
  }

  /** Notes that an endpoint works again. */
  async recovered(applicationId: string, id: string): Promise<void> {
    await this.db
      .updateTable('webhook_endpoints')
      .set({ failing_since: null })
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .execute();
  }

  /** Disables an endpoint for a fault of its own, and drops the events that wait for it. False if it is gone, or disabled already. */
  async disable(applicationId: string, id: string, reason: DisabledReason, db: Database): Promise<boolean> {
    const row = await db
      .updateTable('webhook_endpoints')
      .set({ enabled: false, disabled_reason: reason })
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('enabled', '=', true)
      .returning('id')
      .executeTakeFirst();
    if (row !== undefined) await this.queue.clear(applicationId, WEBHOOK_JOB, id, db);
    return row !== undefined;
  }

  #seal(id: string, secrets: Secrets): Uint8Array {
    return this.envelope.sealJson(place(id), secrets);
  }

  #open(id: string, secrets: Uint8Array): Secrets {
    return this.envelope.openJson<Secrets>(place(id), secrets);
  }

  async #checkAccounts(applicationId: string, accountIds: readonly string[] | null, trx: Database): Promise<void> {
    if (accountIds === null || accountIds.length === 0) return;
    const rows = await trx
      .selectFrom('accounts')
      .select('id')
      .where('application_id', '=', applicationId)
      .where('id', 'in', accountIds)
      .where('removed_at', 'is', null)
      .execute();
    const unknown = accountIds.find((id) => !rows.some((row) => row.id === id));
    if (unknown !== undefined)
      throw new ServiceError(
        404,
        'errors/invalid_resource_identifier',
        `account_ids[${accountIds.indexOf(unknown)}]: no account of your application has this id.`,
      );
  }
}

type Columns = Pick<Endpoint, 'url' | 'trigger_events' | 'account_ids' | 'description' | 'enabled'>;

function columnsOf(fields: EndpointFields): Columns;
function columnsOf(
  fields: { readonly [Field in keyof EndpointFields]?: EndpointFields[Field] | undefined },
): Partial<Columns>;
function columnsOf({
  url,
  triggerEvents,
  accountIds,
  description,
  enabled,
}: { readonly [Field in keyof EndpointFields]?: EndpointFields[Field] | undefined }): Partial<Columns> {
  return {
    ...(url === undefined ? {} : { url }),
    ...(triggerEvents === undefined ? {} : { trigger_events: [...triggerEvents] }),
    ...(accountIds === undefined ? {} : { account_ids: accountIds === null ? null : [...accountIds] }),
    ...(description === undefined ? {} : { description }),
    ...(enabled === undefined ? {} : { enabled }),
  };
}
