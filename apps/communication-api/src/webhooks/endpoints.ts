import { type Selectable, sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { countInTurn } from '../db/count.ts';
import { type Database, inTransaction } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { WebhookEndpointRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { type EventType, triggersOf } from '../domain/event-types.ts';
import { isId, newId } from '../domain/ids.ts';
import type { Page } from '../domain/page.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { JobTable } from '../jobs/job-table.ts';
import type { Envelope } from '../security/envelope.ts';
import { EndpointSecrets, secretsVersionOf } from './endpoint-secrets.ts';

/** An endpoint. Its secrets are sealed. */
export type Endpoint = Selectable<WebhookEndpointRow>;

/** Why the service disables an endpoint: it answers 410, or it failed for five days. */
export type DisabledReason = NonNullable<Endpoint['disabled_reason']>;

/** The fields of an endpoint that a client sets. */
export interface EndpointFields {
  readonly url: string;
  /** Types of events, and patterns such as `account.*`. */
  readonly triggerEvents: readonly string[];
  /** Only events of these accounts; null: of all, and those without an account. */
  readonly accountIds: readonly string[] | null;
  readonly description: string | null;
  readonly enabled: boolean;
}

/** A new endpoint. */
export interface NewEndpoint extends EndpointFields {
  /** Default: a new one. An endpoint that is made twice with one id is made once. */
  readonly id?: string | undefined;
}

export interface RotatedSecret {
  readonly secret: string;
  /** Until then, the old secret signs as well. */
  readonly previousUntil: Date;
}

/** The kind of the jobs that deliver an event to an endpoint: the lane is the endpoint, the subject the event. */
export const WEBHOOK_JOB = 'webhook';
const RECENT_MS = 1_000;
/** Each event costs a look at every endpoint of its application. */
export const MAX_ENDPOINTS = 50;
/** Where applications receive their events. */
export class Endpoints {
  readonly secrets: EndpointSecrets;
  readonly #recent = new LRUCache<string, boolean>({ max: 10_000, ttl: RECENT_MS });

  constructor(
    private readonly db: Database,
    envelope: Envelope,
    private readonly clock: Clock,
    private readonly jobs: Pick<JobTable, 'clear'>,
  ) {
    this.secrets = new EndpointSecrets(envelope, clock);
  }

  /**
   * Creates an endpoint. Its secret is returned here and never again.
   * @throws ServiceError 404 if an account is unknown, 409 if the application owns too many endpoints, or if the
   * endpoint of the id was already created
   */
  async create(
    applicationId: string,
    { id = newId('whe', this.clock()), ...fields }: NewEndpoint,
    db: Database = this.db,
  ): Promise<{ readonly endpoint: Endpoint; readonly secret: string }> {
    const { secret, sealed } = this.secrets.create(id);
    const endpoint = await inTransaction(db, async (trx) => {
      if ((await countInTurn(applicationId, 'webhook_endpoints', trx)) >= MAX_ENDPOINTS)
        throw new ServiceError(
          409,
          'errors/conflict',
          `Your application has ${MAX_ENDPOINTS} endpoints, which is the limit. Delete one first.`,
        );
      await this.#checkAccounts(applicationId, fields.accountIds, trx);
      const row = await trx
        .insertInto('webhook_endpoints')
        .values({
          id,
          application_id: applicationId,
          ...columnsOf(fields),
          secrets: sealed,
          created_at: new Date(this.clock()),
        })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) throw new ServiceError(409, 'errors/already_exists', 'This endpoint was created already.');
      return row;
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

  async find(applicationId: string, id: string, db: Database = this.db): Promise<Endpoint | undefined> {
    if (!isId(id, 'whe')) return undefined;
    return db
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

  /** Whether an application has enabled endpoints, as of a second ago. */
  async mayTake(applicationId: string): Promise<boolean> {
    const known = this.#recent.get(applicationId);
    if (known !== undefined) return known;
    const row = await this.db
      .selectFrom('webhook_endpoints')
      .select('id')
      .where('application_id', '=', applicationId)
      .where('enabled', '=', true)
      .limit(1)
      .executeTakeFirst();
    this.#recent.set(applicationId, row !== undefined);
    return row !== undefined;
  }

  /**
   * Changes the given values. Events that wait for a disabled endpoint are dropped, and the failures of an endpoint
   * that is enabled again are forgotten. Returns undefined if the endpoint does not exist.
   * @throws ServiceError 404 if an account is unknown
   */
  async update(
    applicationId: string,
    id: string,
    changes: { readonly [Field in keyof EndpointFields]?: EndpointFields[Field] | undefined },
    db: Database = this.db,
  ): Promise<Endpoint | undefined> {
    const columns = columnsOf(changes);
    if (Object.keys(columns).length === 0) return this.find(applicationId, id, db);
    if (!isId(id, 'whe')) return undefined;
    return inTransaction(db, async (trx) => {
      await this.#checkAccounts(applicationId, changes.accountIds ?? null, trx);
      if (changes.enabled === false) await this.jobs.clear(applicationId, WEBHOOK_JOB, id, trx);
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
  async remove(applicationId: string, id: string, db: Database = this.db): Promise<boolean> {
    if (!isId(id, 'whe')) return false;
    return inTransaction(db, async (trx) => {
      const row = await trx
        .deleteFrom('webhook_endpoints')
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .returning('id')
        .executeTakeFirst();
      await this.jobs.clear(applicationId, WEBHOOK_JOB, id, trx);
      return row !== undefined;
    });
  }

  /**
   * Makes a new secret, which is returned here and never again. For 24 hours, the old secret signs as well.
   * Returns undefined if the endpoint does not exist.
   * @param seen the version of the secrets that the caller replaces: see `secretsVersionOf`. Default: the present
   * version
   * @throws ServiceError 409 if they changed since: a second rotation would end the secret that receivers verify with
   */
  async rotateSecret(
    applicationId: string,
    id: string,
    seen?: string,
    db: Database = this.db,
  ): Promise<RotatedSecret | undefined> {
    if (!isId(id, 'whe')) return undefined;
    return inTransaction(db, async (trx) => {
      const row = await trx
        .selectFrom('webhook_endpoints')
        .select(['id', 'secrets'])
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .forUpdate()
        .executeTakeFirst();
      if (row === undefined) return undefined;
      if (seen !== undefined && seen !== secretsVersionOf(row))
        throw new ServiceError(409, 'errors/conflict', 'The endpoint got a new secret since you opened the page.');
      const { secret, sealed, previousUntil } = this.secrets.rotate(row);
      await trx
        .updateTable('webhook_endpoints')
        .set({ secrets: sealed })
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .execute();
      return { secret, previousUntil };
    });
  }

  /** Notes a failure of an endpoint. @returns the time of its first failure since its last success */
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

  /**
   * Disables an endpoint because of its own failure, and drops the events that wait for it. Returns false if the
   * endpoint is gone or already disabled.
   */
  async disable(applicationId: string, id: string, reason: DisabledReason, db: Database): Promise<boolean> {
    const row = await db
      .updateTable('webhook_endpoints')
      .set({ enabled: false, disabled_reason: reason })
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('enabled', '=', true)
      .returning('id')
      .executeTakeFirst();
    if (row !== undefined) await this.jobs.clear(applicationId, WEBHOOK_JOB, id, db);
    return row !== undefined;
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
