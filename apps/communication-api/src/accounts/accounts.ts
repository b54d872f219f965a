import { type Selectable, sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { type Database, inTransaction } from '../db/database.ts';
import { json } from '../db/json.ts';
import { onPage } from '../db/page.ts';
import type { AccountRow } from '../db/tables.ts';
import type { AccountStatus } from '../domain/account-status.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import { type InitialSync, startSync } from '../domain/initial-sync.ts';
import type { Page } from '../domain/page.ts';
import type { CustomProxy } from '../domain/proxy.ts';
import { ServiceError } from '../domain/service-error.ts';
import { lockActiveScope } from '../scopes/active-scope.ts';
import type { Envelope } from '../security/envelope.ts';
import type { Events, EventType } from '../webhooks/events.ts';
import { type AccountSecret, AccountSecrets } from './account-secrets.ts';
import { type Refresh, Renewals } from './renewals.ts';

export type { AccountSecret } from './account-secrets.ts';
export type Account = Selectable<AccountRow>;

/** An account that a provider identified. */
export interface NewAccount {
  readonly provider: string;
  readonly providerUserId: string;
  readonly name: string;
  readonly scopeId: string | null;
  readonly secret: AccountSecret;
  /** How long the initial sync takes, in milliseconds. Default: it is completed at once. */
  readonly initialSyncMs?: number | undefined;
}

/** The values that replace the old values of a reconnected account. */
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
  /** Only accounts that are in each of these scopes: the requested scope, and the scope that confines the caller. */
  readonly scopeIds?: readonly string[] | undefined;
  /** A part of the name or of the provider's own id, in any case. */
  readonly search?: string | undefined;
}

/** The values that a client may change. */
export interface AccountChanges {
  readonly metadata?: Record<string, unknown> | undefined;
  readonly scopeId?: string | undefined;
  readonly paused?: boolean | undefined;
}

const CACHED_ACCOUNTS = 10_000;
/** A change by another process is noticed this much later at most, and one query later. */
const CACHE_MS = 500;

/** Adjusted limits, which end with their account. */
export interface LimitsOfAccounts {
  forget(accountId: string, transaction: Database): Promise<void>;
}

/** Linked accounts. */
export class Accounts {
  readonly #recent = new LRUCache<string, Promise<Account | undefined>>({ max: CACHED_ACCOUNTS, ttl: CACHE_MS });
  readonly #secrets: AccountSecrets;
  readonly #renewals: Renewals;

  constructor(
    private readonly db: Database,
    envelope: Envelope,
    private readonly clock: Clock,
    private readonly events: Events,
    private readonly limits?: LimitsOfAccounts,
  ) {
    this.#secrets = new AccountSecrets(envelope);
    this.#renewals = new Renewals(db, this.#secrets, clock);
  }

  /** Stores a linked account. Returns undefined if the application already linked this account of the provider. */
  async insert(
    applicationId: string,
    { provider, providerUserId, name, scopeId, secret, initialSyncMs }: NewAccount,
    db: Database = this.db,
  ): Promise<Account | undefined> {
    const now = this.clock();
    const id = newId('acc', now);
    const sync = startSync(now, initialSyncMs);
    return inTransaction(db, async (transaction) => {
      const account = await transaction
        .insertInto('accounts')
        .values({
          id,
          application_id: applicationId,
          scope_id: scopeId,
          provider,
          provider_user_id: providerUserId,
          name,
          status: 'running',
          secret: this.#secrets.seal(id, secret),
          proxy: json(shownProxy(secret.proxy)),
          sync: json(sync),
          metadata: json({}),
          created_at: new Date(now),
          connected_at: new Date(now),
        })
        .onConflict((conflict) =>
          conflict
            .columns(['application_id', 'provider', 'provider_user_id'])
            .where('removed_at', 'is', null)
            .doNothing(),
        )
        .returningAll()
        .executeTakeFirst();
      if (account === undefined) return undefined;
      await this.#addEvent(account, 'account.connected', transaction);
      await this.#addSyncEvent(account, sync, transaction);
      return account;
    });
  }

  /** The id of the account, if the application already linked this account of the provider. */
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

  /** Replaces the credentials of an account, which then runs again. Returns false if the account is removed. */
  async reconnect(
    applicationId: string,
    id: string,
    { name, secret, initialSyncMs }: Reconnection,
    db: Database = this.db,
  ): Promise<boolean> {
    const now = this.clock();
    const sync = startSync(now, initialSyncMs);
    return this.#change(db, async (transaction) => {
      const account = await transaction
        .updateTable('accounts')
        .set({
          name,
          status: 'running',
          status_reason: null,
          auth_failed_at: null,
          secret: this.#secrets.seal(id, secret),
          proxy: json(shownProxy(secret.proxy)),
          sync: json(sync),
          connected_at: new Date(now),
          // A refresh of the old credentials no longer stores anything.
          renewal_owner: null,
          renewal_until: null,
        })
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        .returningAll()
        .executeTakeFirst();
      if (account === undefined) return false;
      await this.#addEvent(account, 'account.reconnected', transaction);
      await this.#addSyncEvent(account, sync, transaction);
      return true;
    });
  }

  /** One account that is not removed. */
  async find(applicationId: string, id: string): Promise<Account | undefined> {
    return isId(id, 'acc') ? this.#linked(applicationId).where('id', '=', id).executeTakeFirst() : undefined;
  }

  /** The same, perhaps from half a second ago. A change by this process is seen by the next call. */
  findRecent(applicationId: string, id: string): Promise<Account | undefined> {
    const name = `${applicationId} ${id}`;
    let found = this.#recent.get(name);
    if (found === undefined) {
      found = this.find(applicationId, id);
      this.#recent.set(name, found);
      found.catch(() => this.#recent.delete(name));
    }
    return found;
  }

  /**
   * Forgets the accounts that {@link findRecent} has read. Each change does that. A caller with its own transaction does
   * it once more after the end of that transaction, because an account that was read before that shows its old state.
   */
  forgetRecent(): void {
    this.#recent.clear();
  }

  /** The same, locked until the end of the transaction. */
  async lock(applicationId: string, id: string, transaction: Database): Promise<Account | undefined> {
    if (!isId(id, 'acc')) return undefined;
    return this.#linked(applicationId, transaction).where('id', '=', id).forUpdate().executeTakeFirst();
  }

  /** The accounts of an application that are not removed. */
  #linked(applicationId: string, db: Database = this.db) {
    return db
      .selectFrom('accounts')
      .selectAll()
      .where('application_id', '=', applicationId)
      .where('removed_at', 'is', null);
  }

  /** Some accounts that are not removed. */
  async findAll(applicationId: string, ids: readonly string[]): Promise<readonly Account[]> {
    return this.#linked(applicationId)
      .where('id', '=', sql<string>`any(${[...ids]})`)
      .execute();
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
    page: Page,
  ): Promise<readonly Account[]> {
    let query = this.#linked(applicationId);
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
    return query.$call(onPage(page)).execute();
  }

  /** The accounts of a provider, last sender first. An account that sent nothing counts from the time it was linked. */
  async lastUsed(applicationId: string, provider: string, limit: number): Promise<readonly Account[]> {
    return this.#linked(applicationId)
      .where('provider', '=', provider)
      .orderBy(
        ({ fn, selectFrom }) =>
          fn.coalesce(
            selectFrom('sends')
              .select('sends.created_at')
              .where('sends.application_id', '=', applicationId)
              .whereRef('sends.account_id', '=', 'accounts.id')
              .orderBy('sends.id', 'desc')
              .limit(1),
            'accounts.created_at',
          ),
        'desc',
      )
      .limit(limit)
      .execute();
  }

  /**
   * Changes the given values. Returns undefined if the account does not exist.
   * @throws ServiceError 409 if the account is in another scope, 404 if the scope does not exist, 422 if it is disabled
   */
  async update(
    applicationId: string,
    id: string,
    { metadata, scopeId, paused }: AccountChanges,
    db: Database = this.db,
  ): Promise<Account | undefined> {
    return this.#change(db, async (transaction) => {
      const account = await this.lock(applicationId, id, transaction);
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
      const changed = await transaction
        .updateTable('accounts')
        .set(changes)
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirstOrThrow();
      if (changed.paused_at?.getTime() !== account.paused_at?.getTime())
        await this.#addEvent(changed, changed.paused_at === null ? 'account.resumed' : 'account.paused', transaction);
      return changed;
    });
  }

  /** An account that is paused again keeps the time of its first pause. */
  #pauseOf({ paused_at }: Account, paused: boolean | undefined): { readonly paused_at?: Date | null } {
    if (paused === undefined || paused === (paused_at !== null)) return {};
    return { paused_at: paused ? new Date(this.clock()) : null };
  }

  /**
   * Removes an account. Its credentials, and everything else that a client or a provider said about it, are erased:
   * only its id, provider and scope stay.
   * @returns the account before its removal; undefined if it does not exist
   */
  async remove(applicationId: string, id: string, db: Database = this.db): Promise<Account | undefined> {
    return this.#change(db, async (transaction) => {
      const account = await this.lock(applicationId, id, transaction);
      if (account === undefined) return undefined;
      await transaction
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
        .execute();
      await transaction
        .deleteFrom('sent_copies')
        .where('application_id', '=', applicationId)
        .where('account_id', '=', id)
        .execute();
      await this.limits?.forget(id, transaction);
      await this.#addEvent(account, 'account.removed', transaction);
      return account;
    });
  }

  /**
   * Completes the initial syncs whose time is over, of all applications. The API already reports them as complete; this
   * method writes their events.
   * @param limit accounts per call
   */
  async completeSyncs(limit: number): Promise<void> {
    const now = this.clock();
    await this.db.transaction().execute(async (transaction) => {
      const due = await transaction
        .selectFrom('accounts')
        .selectAll()
        .where(sql<string>`sync ->> 'status'`, '=', 'running')
        .where(
          sql<number>`extract(epoch from (sync ->> 'started_at')::timestamptz) * 1000 + (sync ->> 'duration_ms')::bigint`,
          '<=',
          now,
        )
        .where('removed_at', 'is', null)
        .limit(limit)
        // Another process may do the same.
        .forUpdate()
        .skipLocked()
        .execute();
      for (const account of due) {
        const sync = { ...account.sync, status: 'completed' } as const;
        await transaction
          .updateTable('accounts')
          .set({ sync: json(sync) })
          .where('application_id', '=', account.application_id)
          .where('id', '=', account.id)
          .execute();
        await this.#addSyncEvent(account, sync, transaction);
      }
    });
  }

  async #addEvent({ id, application_id, provider, scope_id }: Account, type: EventType, db: Database): Promise<void> {
    await this.events.add(application_id, { type, accountId: id, data: { provider, scope_id } }, db);
  }

  async #addSyncEvent(account: Account, { status }: InitialSync, db: Database): Promise<void> {
    await this.#addEvent(account, status === 'running' ? 'account.sync.started' : 'account.sync.completed', db);
  }

  /**
   * Replaces expired credentials, one caller per account at a time over all processes: see {@link Renewals}.
   * @param stale the credentials that do not work. If others are stored by now, this method returns them
   * @param refresh makes new credentials from the stored ones. If it throws, the error is rethrown and nothing is
   * stored
   * @throws ServiceError 404 if the account was removed, 503 if the refresh takes longer than 20 s
   */
  async renew(applicationId: string, id: string, stale: unknown, refresh: Refresh): Promise<unknown> {
    return this.#renewals.renew(applicationId, id, stale, refresh).finally(() => this.forgetRecent());
  }

  #change<Result>(db: Database, work: (transaction: Database) => Promise<Result>): Promise<Result> {
    return inTransaction(db, work).finally(() => this.forgetRecent());
  }

  /** Credentials and proxy of an account. */
  secretOf(account: Account): AccountSecret {
    return this.#secrets.open(account);
  }
}
