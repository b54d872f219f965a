import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { AccountSecret, AccountSecrets } from './account-secrets.ts';

/** Makes new credentials from the stored ones, with the provider. */
export type Refresh = (stored: unknown) => Promise<unknown>;

/** How long a refresh may take. */
const REFRESH_MS = 20_000;
/** A lease is longer than a refresh, so it expires during one only if its process is dead or frozen. */
const LEASE_MARGIN_MS = 10_000;
/** How often a caller checks whether the lease ended, or new credentials are stored. */
const POLL_MS = 100;
const STORE_ATTEMPTS = 3;
/** When a client should try again, in seconds. */
const RETRY_SECONDS = 5;

/** A renewal that runs in this process. */
interface Running {
  readonly stale: unknown;
  readonly result: Promise<unknown>;
}

/** Credentials that are newer than the caller's, or the lease to refresh the caller's. */
type Taken = { readonly newer: unknown } | { readonly lease: string };

/**
 * Renews the credentials of accounts, one caller per account at a time over all processes. A provider may accept a
 * refresh token only once, so two refreshes at the same time would lose the account. The right to refresh is a lease in
 * the row of the account. No transaction is open while the provider is asked: the embedded database has one connection.
 */
export class Renewals {
  readonly #running = new Map<string, Running>();

  constructor(
    private readonly db: Database,
    private readonly secrets: AccountSecrets,
    private readonly clock: Clock,
    private readonly refreshMs = REFRESH_MS,
  ) {}

  /**
   * @param stale the credentials that do not work
   * @returns the credentials that are stored now; another caller may have stored them
   * @throws the error of `refresh`, unless another caller stored new credentials meanwhile
   * @throws ServiceError 404 if the account was removed, 503 if the refresh takes too long
   */
  async renew(applicationId: string, id: string, stale: unknown, refresh: Refresh): Promise<unknown> {
    const running = this.#running.get(id);
    // Callers of one process share a refresh, and its error: each of them would only repeat it.
    if (running !== undefined && isDeepStrictEqual(running.stale, stale)) return running.result;
    const result = this.#renew(applicationId, id, stale, refresh);
    if (running !== undefined) return result;
    this.#running.set(id, { stale, result });
    try {
      return await result;
    } finally {
      this.#running.delete(id);
    }
  }

  async #renew(applicationId: string, id: string, stale: unknown, refresh: Refresh): Promise<unknown> {
    const taken = await this.#take(applicationId, id, stale);
    if ('newer' in taken) return taken.newer;
    const renewed = (async () => refresh(stale))().then(
      (credentials) => this.#store(applicationId, id, stale, credentials),
      (error: unknown) => this.#giveBack(applicationId, id, stale, taken.lease, error),
    );
    return this.#inTime(renewed);
  }

  /** Waits for the lease, or for the credentials that its holder stores. */
  async #take(applicationId: string, id: string, stale: unknown): Promise<Taken> {
    const leaseMs = this.refreshMs + LEASE_MARGIN_MS;
    const lease = randomUUID();
    const deadline = performance.now() + leaseMs + this.refreshMs;
    for (;;) {
      const { secret, bytes } = await this.#read(applicationId, id, this.db);
      if (!isDeepStrictEqual(secret.credentials, stale)) return { newer: secret.credentials };
      const now = this.clock();
      const row = await this.db
        .updateTable('accounts')
        .set({ renewal_owner: lease, renewal_until: new Date(now + leaseMs) })
        .where('application_id', '=', applicationId)
        .where('id', '=', id)
        // Other credentials may have been stored since they were read.
        .where('secret', '=', bytes)
        .where(({ eb, or }) => or([eb('renewal_until', 'is', null), eb('renewal_until', '<=', new Date(now))]))
        .returning('id')
        .executeTakeFirst();
      if (row !== undefined) return { lease };
      if (performance.now() > deadline) throw tooSlow();
      await pause(POLL_MS);
    }
  }

  /**
   * The new credentials may be the only ones that the provider still accepts, so a short failure of the database must
   * not lose them. They are stored even after the lease, if nothing else was stored meanwhile.
   */
  async #store(applicationId: string, id: string, stale: unknown, credentials: unknown): Promise<unknown> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.db.transaction().execute(async (transaction) => {
          const { secret } = await this.#read(applicationId, id, transaction);
          if (!isDeepStrictEqual(secret.credentials, stale)) return secret.credentials;
          const sealed = this.secrets.seal(id, { ...secret, credentials });
          await transaction
            .updateTable('accounts')
            .set({ secret: sealed, renewal_owner: null, renewal_until: null })
            .where('application_id', '=', applicationId)
            .where('id', '=', id)
            .execute();
          // JSON drops undefined values. Return the credentials as the next caller will read them.
          return this.secrets.open({ id, secret: sealed }).credentials;
        });
      } catch (error) {
        if (error instanceof ServiceError || attempt === STORE_ATTEMPTS) throw error;
        await pause(POLL_MS * attempt);
      }
    }
  }

  /**
   * Ends a failed refresh. If another caller renewed the credentials meanwhile, the refresh had to fail: all is well.
   */
  async #giveBack(applicationId: string, id: string, stale: unknown, lease: string, error: unknown): Promise<unknown> {
    const stored = await this.#release(applicationId, id, lease).catch(() => undefined);
    if (stored === undefined || isDeepStrictEqual(stored.credentials, stale)) throw error;
    return stored.credentials;
  }

  async #release(applicationId: string, id: string, lease: string): Promise<AccountSecret> {
    await this.db
      .updateTable('accounts')
      .set({ renewal_owner: null, renewal_until: null })
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('renewal_owner', '=', lease)
      .execute();
    return (await this.#read(applicationId, id, this.db)).secret;
  }

  /** Reads the secret, and locks its row if this is part of a transaction. */
  async #read(
    applicationId: string,
    id: string,
    db: Database,
  ): Promise<{ readonly secret: AccountSecret; readonly bytes: Uint8Array }> {
    const row = await db
      .selectFrom('accounts')
      .select(['id', 'secret'])
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('removed_at', 'is', null)
      .$if(db.isTransaction, (query) => query.forUpdate())
      .executeTakeFirst();
    if (row?.secret == null)
      throw new ServiceError(404, 'errors/invalid_resource_identifier', 'The account was removed.');
    return { secret: this.secrets.open(row), bytes: row.secret };
  }

  /** A refresh that is too late still stores its result: its lease stays until it expires. */
  async #inTime(renewed: Promise<unknown>): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(tooSlow()), this.refreshMs);
    });
    try {
      return await Promise.race([renewed, deadline]);
    } finally {
      clearTimeout(timer);
    }
  }
}

const tooSlow = (): ServiceError =>
  new ServiceError(
    503,
    'errors/service_unavailable',
    'The provider did not renew its permission for the account in time.',
    { retryAfter: RETRY_SECONDS },
  );
