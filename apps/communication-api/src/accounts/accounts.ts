import { isDeepStrictEqual } from 'node:util';
import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { json } from '../db/json.ts';
import type { AccountRow } from '../db/tables.ts';
import type { AccountStatus } from '../domain/account-status.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import { startSync } from '../domain/initial-sync.ts';
import type { Page } from '../domain/page.ts';
import type { AutoProxy, CustomProxy } from '../domain/proxy.ts';
import { ServiceError } from '../domain/service-error.ts';
import { lockActiveScope } from '../scopes/active-scope.ts';
import type { Envelope } from '../security/envelope.ts';

export type Account = Selectable<AccountRow>;

/** What is sealed beside an account. */
export interface AccountSecret {
  /** As the provider made it when the account was linked. */
  readonly credentials: unknown;
  readonly proxy?: CustomProxy | undefined;
  /** Where the service chooses a proxy, if it has no other. */
  readonly autoProxy?: AutoProxy | undefined;
}

/** An account that a provider has identified. */
export interface NewAccount {
  readonly provider: string;
  readonly providerUserId: string;
  readonly name: string;
  readonly scopeId: string | null;
  readonly secret: AccountSecret;
  /** How long the initial sync takes, in milliseconds. Default: it is completed at once. */
  readonly initialSyncMs?: number | undefined;
}

/** What a reconnected account gets. */
export type Reconnection = Pick<NewAccount, 'name' | 'secret' | 'initialSyncMs'>;

/** A proxy without its password. */
function shownProxy(proxy: CustomProxy | undefined): Record<string, unknown> | null {
  if (proxy === undefined) return null;
  const { password: _, ...shown } = proxy;
  return shown;
}

/** Which accounts are listed. */
export interface AccountFilter {
  readonly status?: AccountStatus | undefined;
  readonly provider?: string | undefined;
  /** Only accounts that are in each of these scopes: one that is asked for, one that the caller is confined to. */
  readonly scopeIds?: readonly string[] | undefined;
  /** A part of the name or of the provider's own id, in any case. */
  readonly search?: string | undefined;
}

/** What a client may change. */
export interface AccountChanges {
  readonly metadata?: Record<string, unknown> | undefined;
  readonly scopeId?: string | undefined;
  readonly paused?: boolean | undefined;
}

const place = (id: string): string => `accounts/${id}/secret`;

/** Linked accounts. */
export class Accounts {
  constructor(
    private readonly db: Database,
    private readonly envelope: Envelope,
    private readonly clock: Clock,
  ) {}

  /** Stores a linked account. Undefined if the application has linked this account of the provider already. */
  async insert(
    applicationId: string,
    { provider, providerUserId, name, scopeId, secret, initialSyncMs }: NewAccount,
    db: Database = this.db,
  ): Promise<Account | undefined> {
    const now = this.clock();
    const id = newId('acc', now);
    return db
      .insertInto('accounts')
      .values({
        id,
        application_id: applicationId,
        scope_id: scopeId,
        provider,
        provider_user_id: providerUserId,
        name,
        status: 'running',
        secret: this.envelope.sealJson(place(id), secret),
        proxy: json(shownProxy(secret.proxy)),
        sync: json(startSync(now, initialSyncMs)),
        metadata: json({}),
        created_at: new Date(now),
      })
      .onConflict((conflict) =>
        conflict
          .columns(['application_id', 'provider', 'provider_user_id'])
          .where('removed_at', 'is', null)
          .doNothing(),
      )
      .returningAll()
      .executeTakeFirst();
  }

  /** The id of the account that the application has linked, if it has linked this account of the provider. */
  async findLinked(
    applicationId: string,
    provider: string,
    providerUserId: string,
    db: Database = this.db,
  ): Promise<string | undefined> {
    const row = await db
      .selectFrom('accounts')
      .select('id')
      .where('application_id', '=', applicationId)
      .where('provider', '=', provider)
      .where('provider_user_id', '=', providerUserId)
      .where('removed_at', 'is', null)
      .executeTakeFirst();
    return row?.id;
  }

  /** Replaces the credentials of an account, which runs again. False if the account is removed. */
  async reconnect(
    applicationId: string,
    id: string,
    { name, secret, initialSyncMs }: Reconnection,
    db: Database = this.db,
  ): Promise<boolean> {
    const row = await db
      .updateTable('accounts')
      .set({
        name,
        status: 'running',
        status_reason: null,
        secret: this.envelope.sealJson(place(id), secret),
        proxy: json(shownProxy(secret.proxy)),
        sync: json(startSync(this.clock(), initialSyncMs)),
      })
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('removed_at', 'is', null)
      .returning('id')
      .executeTakeFirst();
    return row !== undefined;
  }

  /** One account that is not removed. */
  async find(applicationId: string, id: string): Promise<Account | undefined> {
    if (!isId(id, 'acc')) return undefined;
    return this.db
      .selectFrom('accounts')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('removed_at', 'is', null)
      .executeTakeFirst();
  }

  /** One account that is not removed, of any application: for the operator, at the command line. */
  async findForOperator(id: string): Promise<Account | undefined> {
    if (!isId(id, 'acc')) return undefined;
    return this.db
      .selectFrom('accounts')
      .selectAll()
      .where('id', '=', id)
      .where('removed_at', 'is', null)
      .executeTakeFirst();
  }

  /** One page, and the first entry of the next page if there is one. */
  async list(
    applicationId: string,
    { status, provider, scopeIds = [], search }: AccountFilter,
    { limit, offset, before }: Page,
  ): Promise<readonly Account[]> {
    let query = this.db
      .selectFrom('accounts')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('removed_at', 'is', null);
    if (status === 'paused') query = query.where('paused_at', 'is not', null);
    else if (status !== undefined) query = query.where('status', '=', status).where('paused_at', 'is', null);
    if (provider !== undefined) query = query.where('provider', '=', provider);
    for (const scopeId of scopeIds) query = query.where('scope_id', '=', scopeId);
    if (search !== undefined) {
      const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`;
      query = query.where((account) =>
        account.or([account('name', 'ilike', pattern), account('provider_user_id', 'ilike', pattern)]),
      );
    }
    if (before !== undefined) query = query.where('id', '<', before);
    return query
      .orderBy('id', 'desc')
      .limit(limit + 1)
      .offset(offset)
      .execute();
  }

  /**
   * Changes what is given. Undefined if there is no such account.
   * @throws ServiceError 409 if the account is in another scope, 404 if the scope does not exist, 422 if it is disabled
   */
  async update(
    applicationId: string,
    id: string,
    { metadata, scopeId, paused }: AccountChanges,
  ): Promise<Account | undefined> {
    if (!isId(id, 'acc')) return undefined;
    return this.db.transaction().execute(async (transaction) => {
      const account = await transaction
        .selectFrom('accounts')
        .selectAll()
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        .forUpdate()
        .executeTakeFirst();
      if (account === undefined) return undefined;
      const movesTo = scopeId === account.scope_id ? undefined : scopeId;
      if (movesTo !== undefined) {
        if (account.scope_id !== null)
          throw new ServiceError(
            409,
            'errors/conflict',
            'The account has a scope, and the scope of an account is permanent.',
          );
        await lockActiveScope(applicationId, movesTo, transaction);
      }
      const changes = {
        ...(metadata === undefined ? {} : { metadata: json(metadata) }),
        ...(movesTo === undefined ? {} : { scope_id: movesTo }),
        ...this.#pauseOf(account, paused),
      };
      if (Object.keys(changes).length === 0) return account;
      return transaction
        .updateTable('accounts')
        .set(changes)
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst();
    });
  }

  /** An account that is paused again keeps the time of its first pause. */
  #pauseOf({ paused_at }: Account, paused: boolean | undefined): { readonly paused_at?: Date | null } {
    if (paused === undefined || paused === (paused_at !== null)) return {};
    return { paused_at: paused ? new Date(this.clock()) : null };
  }

  /**
   * Removes an account. Its credentials, and everything else that a client or a provider said about it, are erased: only
   * its id, provider and scope stay. False if there is no such account.
   */
  async remove(applicationId: string, id: string): Promise<boolean> {
    if (!isId(id, 'acc')) return false;
    return this.db.transaction().execute(async (transaction) => {
      const removed = await transaction
        .updateTable('accounts')
        .set({
          removed_at: new Date(this.clock()),
          secret: null,
          proxy: json(null),
          metadata: json({}),
          name: '',
          provider_user_id: '',
          status_reason: null,
        })
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        .returning('id')
        .executeTakeFirst();
      if (removed === undefined) return false;
      await transaction
        .deleteFrom('limit_overrides')
        .where('application_id', '=', applicationId)
        .where('account_id', '=', id)
        .execute();
      return true;
    });
  }

  /**
   * Replaces the credentials of an account, one caller at a time over all processes. A provider may accept a refresh
   * token only once, so two refreshes at the same time would lose the account.
   * @param stale the credentials that do not work. If others are stored by now, those are returned
   * @param refresh makes new credentials from the stored ones. What it throws is thrown, and nothing is stored
   * @throws ServiceError 404 if the account was removed
   */
  async renew(
    applicationId: string,
    id: string,
    stale: unknown,
    refresh: (stored: unknown) => Promise<unknown>,
  ): Promise<unknown> {
    return this.db.transaction().execute(async (transaction) => {
      const account = await transaction
        .selectFrom('accounts')
        .selectAll()
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        .forUpdate()
        .executeTakeFirst();
      if (account === undefined)
        throw new ServiceError(404, 'errors/invalid_resource_identifier', 'The account was removed.');
      const stored = this.secretOf(account);
      if (!isDeepStrictEqual(stored.credentials, stale)) return stored.credentials;
      const credentials = await refresh(stored.credentials);
      await transaction
        .updateTable('accounts')
        .set({ secret: this.envelope.sealJson(place(id), { ...stored, credentials }) })
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .execute();
      return credentials;
    });
  }

  /** Credentials and proxy of an account. */
  secretOf({ id, secret }: Account): AccountSecret {
    if (secret === null) throw new Error(`The account ${id} has no secret.`);
    return this.envelope.openJson<AccountSecret>(place(id), secret);
  }
}
