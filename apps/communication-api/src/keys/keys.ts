import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { type Database, inTransaction } from '../db/database.ts';
import { onPage } from '../db/page.ts';
import type { ApiKeyRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import { type Environment, hashOf, newToken, prefixOf, type Role } from '../domain/key-token.ts';
import type { Page } from '../domain/page.ts';
import { ServiceError } from '../domain/service-error.ts';
import { lockActiveScope } from '../scopes/active-scope.ts';
import { KeyUses } from './key-uses.ts';

/** The caller of a request: what its key may reach. */
export interface Caller {
  readonly keyId: string;
  readonly applicationId: string;
  readonly environment: Environment;
  readonly role: Role;
  /** The one scope of a scoped key. */
  readonly scopeId: string | null;
  readonly scopeIsActive: boolean;
  readonly expiresAt: number;
}

/** The rights of a new key. */
export interface NewKey {
  readonly name: string;
  readonly role: Role;
  readonly scopeId: string | null;
  readonly expiresAt: Date;
  /** Default: a new one. A key that is made twice with one id is made once. */
  readonly id?: string | undefined;
}

/** The columns of a key that may be shown: all but its token and the hash of it. */
const SHOWN = [
  'id',
  'application_id',
  'role',
  'scope_id',
  'name',
  'prefix',
  'issued_at',
  'expires_at',
  'last_used_at',
] as const satisfies readonly (keyof ApiKeyRow)[];

/** A key as it is listed. */
export interface ListedKey {
  readonly id: string;
  readonly application_id: string;
  readonly role: Role;
  readonly scope_id: string | null;
  readonly name: string;
  readonly prefix: string;
  readonly issued_at: Date;
  readonly expires_at: Date;
  readonly last_used_at: Date | null;
}

/** Which keys are listed. */
export interface KeyFilter {
  readonly role?: 'account' | 'scoped' | undefined;
  readonly scopeId?: string | undefined;
}

const ACCOUNT_ROLES = ['account', 'scoped'] as const;
const CACHED_KEYS = 10_000;
/** A revocation in another process is noticed this much later at most, and one query later. */
const CACHE_MS = 500;

/** API keys. */
export class Keys {
  /** Callers by the hash of their token. Unknown tokens are not cached: they would displace the valid ones. */
  readonly #resolved = new LRUCache<string, Caller>({ max: CACHED_KEYS, ttl: CACHE_MS });
  /** Counts the changes in this process, so that a row that was read before a change is not cached after it. */
  #changes = 0;
  readonly #uses: KeyUses;

  /** @param log receives errors that occur after a request was answered */
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
    log?: Pick<Logger, 'warn'>,
  ) {
    this.#uses = new KeyUses(db, clock, log);
  }

  /**
   * Creates a key. Its token is returned here and never again.
   * @throws ServiceError 409 if the key of the id was already created, 404 if the scope does not exist in the
   * application, 422 if the scope is disabled
   */
  async create(
    applicationId: string,
    environment: Environment,
    { name, role, scopeId, expiresAt, id = newId('key', this.clock()) }: NewKey,
    db: Database = this.db,
  ): Promise<{ readonly id: string; readonly token: string }> {
    const now = this.clock();
    const token = newToken(role, environment);
    const row = {
      id,
      application_id: applicationId,
      role,
      scope_id: scopeId,
      name,
      prefix: prefixOf(token),
      token_hash: hashOf(token),
      issued_at: new Date(now),
      expires_at: expiresAt,
    };
    const insert = async (into: Database): Promise<void> => {
      const query = into
        .insertInto('api_keys')
        .values(row)
        .onConflict((conflict) => conflict.column('id').doNothing());
      if ((await query.returning('id').executeTakeFirst()) === undefined)
        throw new ServiceError(409, 'errors/already_exists', 'This key was created already.');
    };
    if (scopeId === null) await insert(db);
    else
      await inTransaction(db, async (transaction) => {
        await lockActiveScope(applicationId, scopeId, transaction);
        await insert(transaction);
      });
    return { id, token };
  }

  /** One page of the account keys that are not revoked, and the first one of the next page. Never a service key. */
  async list(applicationId: string, { role, scopeId }: KeyFilter, page: Page): Promise<readonly ListedKey[]> {
    return this.#listed(applicationId, role === undefined ? ACCOUNT_ROLES : [role])
      .$if(scopeId !== undefined, (query) => query.where('scope_id', '=', scopeId ?? ''))
      .$call(onPage(page))
      .execute();
  }

  /** Like {@link list}, for service keys. */
  async listServiceKeys(applicationId: string, page: Page): Promise<readonly ListedKey[]> {
    return this.#listed(applicationId, ['service']).$call(onPage(page)).execute();
  }

  /**
   * Revokes an account key. Returns false if the application owns no such account key, or if it was already revoked.
   */
  async revoke(applicationId: string, id: string): Promise<boolean> {
    return (await this.revokeKey(applicationId, id, 'account')) !== undefined;
  }

  /**
   * Revokes a key of a kind, and returns its name. Returns undefined if the key does not exist, or was already revoked.
   */
  async revokeKey(
    applicationId: string,
    id: string,
    kind: 'service' | 'account',
    db: Database = this.db,
  ): Promise<string | undefined> {
    if (!isId(id, 'key')) return undefined;
    const row = await db
      .updateTable('api_keys')
      .set({ revoked_at: new Date(this.clock()) })
      .where('application_id', '=', applicationId)
      .where('id', '=', id)
      .where('role', 'in', kind === 'service' ? ['service'] : ACCOUNT_ROLES)
      .where('revoked_at', 'is', null)
      .returning('name')
      .executeTakeFirst();
    this.forgetResolved();
    return row?.name;
  }

  /**
   * Finds the key of a token. Returns undefined if the token is unknown or its key is revoked; an expired key is found.
   * A change by another process is noticed within a second.
   */
  async resolve(token: string): Promise<Caller | undefined> {
    const hash = hashOf(token);
    const known = this.#resolved.get(hash);
    if (known !== undefined) return known;
    const changes = this.#changes;
    // The age of an entry counts from before the query: the row may change after it was read.
    const start = performance.now();
    const caller = await this.#read(hash);
    if (caller !== undefined && changes === this.#changes) this.#resolved.set(hash, caller, { start });
    return caller;
  }

  /**
   * Forgets the resolved keys, so that the next request of each key reads it again. For changes of the rights of keys.
   */
  forgetResolved(): void {
    this.#changes++;
    this.#resolved.clear();
  }

  /** Notes that a key was used. It is written later, at most once a minute for each key. */
  noteUse(keyId: string): void {
    this.#uses.note(keyId);
  }

  /** Writes the noted uses. */
  async close(): Promise<void> {
    await this.#uses.close();
  }

  /** The keys of an application that are not revoked. */
  #listed(applicationId: string, roles: readonly Role[]) {
    return this.db
      .selectFrom('api_keys')
      .select(SHOWN)
      .where('application_id', '=', applicationId)
      .where('role', 'in', roles)
      .where('revoked_at', 'is', null);
  }

  /** The look-up is by a digest, so the time that it takes says nothing about any token. */
  async #read(hash: string): Promise<Caller | undefined> {
    const row = await this.db
      .selectFrom('api_keys as key')
      .innerJoin('applications as application', 'application.id', 'key.application_id')
      .leftJoin('scopes as scope', 'scope.id', 'key.scope_id')
      .select(['key.id', 'key.application_id', 'key.role', 'key.scope_id', 'key.expires_at'])
      .select(['application.environment', 'scope.status as scope_status'])
      .where('key.token_hash', '=', hash)
      .where('key.revoked_at', 'is', null)
      .executeTakeFirst();
    return (
      row && {
        keyId: row.id,
        applicationId: row.application_id,
        environment: row.environment,
        role: row.role,
        scopeId: row.scope_id,
        scopeIsActive: row.scope_id === null || row.scope_status === 'active',
        expiresAt: row.expires_at.getTime(),
      }
    );
  }
}
