import { createHash, randomBytes } from 'node:crypto';
import type { Accounts, NewAccount } from '../accounts/accounts.ts';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import type { LinkConfig } from '../domain/link-config.ts';
import type { ProviderName } from '../domain/providers.ts';
import { ServiceError } from '../domain/service-error.ts';
import { lockActiveScope } from '../scopes/active-scope.ts';
import type { Envelope } from '../security/envelope.ts';
import type { Link } from './link.ts';
import type { WizardSessions } from './wizard-sessions.ts';

/** The fields of a new link. */
export interface NewLink {
  /** Default: a new one. */
  readonly id?: string | undefined;
  /** Null: a person makes it, in the dashboard. */
  readonly keyId: string | null;
  /** The scope of the account that will be linked. */
  readonly scopeId: string | null;
  /** The account to reconnect; null: a new one. */
  readonly accountId: string | null;
  /** The providers that the user may choose from. */
  readonly providers: readonly ProviderName[];
  readonly config: LinkConfig;
  readonly redirectUri: string;
  readonly state: string | null;
  /** Host of the wizard; null: the default one. */
  readonly domain: string | null;
  readonly expiresOn: Date;
}

/** The link, the session and the account of an attempt to link. */
export interface Linking {
  readonly link: Link;
  /** The session that links. */
  readonly sessionId: string;
  readonly account: Omit<NewAccount, 'scopeId'>;
}

/** How an attempt to link ended. */
export type LinkOutcome =
  | { readonly kind: 'linked'; readonly accountId: string }
  /** The link was used, cancelled or expired in the meantime. */
  | { readonly kind: 'closed' }
  /** The application already linked this account of the provider. */
  | { readonly kind: 'exists'; readonly accountId: string }
  /** The account to reconnect was removed in the meantime. */
  | { readonly kind: 'removed' };

/** How long a link is kept after it was used, cancelled or expired. */
const RETENTION_MS = 7 * 86_400_000;
const TOKEN_BYTES = 32;
/** Hexadecimal: a program that looks for links in a text could cut off a `-` or `_` at the end. */
const TOKEN = /^[0-9a-f]{64}$/;

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');
const place = (id: string): string => `auth_links/${id}/config`;

/** Undoes a transaction. */
class Undo extends Error {
  constructor(readonly outcome: LinkOutcome) {
    super(outcome.kind);
  }
}

/** Hosted-auth links. Each links one account, once. */
export class Links {
  constructor(
    private readonly db: Database,
    private readonly envelope: Envelope,
    private readonly clock: Clock,
    private readonly accounts: Accounts,
    private readonly sessions: WizardSessions,
  ) {}

  /**
   * Creates a link. Its token is returned here and never again.
   * @throws ServiceError 409 if the link of the id was created already
   */
  async create(
    applicationId: string,
    link: NewLink,
    db: Database = this.db,
  ): Promise<{ readonly id: string; readonly token: string }> {
    const now = this.clock();
    const { id = newId('lnk', now) } = link;
    const token = randomBytes(TOKEN_BYTES).toString('hex');
    const created = await db
      .insertInto('auth_links')
      .values({
        id,
        application_id: applicationId,
        token_hash: hashOf(token),
        api_key_id: link.keyId,
        scope_id: link.scopeId,
        account_id: link.accountId,
        providers: [...link.providers],
        // A proxy may contain a password.
        config: this.envelope.sealJson(place(id), link.config),
        redirect_uri: link.redirectUri,
        client_state: link.state,
        domain: link.domain,
        status: 'open',
        expires_on: link.expiresOn,
        created_at: new Date(now),
      })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .executeTakeFirst();
    if (created === undefined) throw new ServiceError(409, 'errors/already_exists', 'This link was created already.');
    return { id, token };
  }

  /** The link of a token, whatever its status is. */
  async resolve(token: string): Promise<Link | undefined> {
    if (!TOKEN.test(token)) return undefined;
    return this.db.selectFrom('auth_links').selectAll().where('token_hash', '=', hashOf(token)).executeTakeFirst();
  }

  configOf({ id, config }: Link): LinkConfig {
    return this.envelope.openJson<LinkConfig>(place(id), config);
  }

  /** Stores the account of an open link, which is then used up: of two attempts, one gets `closed`. */
  async complete(applicationId: string, linking: Linking): Promise<LinkOutcome> {
    const { link, sessionId } = linking;
    try {
      return await this.db.transaction().execute(async (trx): Promise<LinkOutcome> => {
        const open = await trx
          .updateTable('auth_links')
          .set({ status: 'used', closed_at: new Date(this.clock()) })
          .where('application_id', '=', applicationId)
          .where('id', '=', link.id)
          .where('status', '=', 'open')
          .where('expires_on', '>', new Date(this.clock()))
          .returning('id')
          .executeTakeFirst();
        if (open === undefined) return { kind: 'closed' };
        await checkScope(applicationId, link, trx);
        const accountId = await this.#store(applicationId, linking, trx);
        await trx
          .updateTable('auth_links')
          .set({ used_account_id: accountId })
          .where('application_id', '=', applicationId)
          .where('id', '=', link.id)
          .execute();
        await this.sessions.close(sessionId, 'linked', trx);
        return { kind: 'linked', accountId };
      });
    } catch (error) {
      if (error instanceof Undo) return error.outcome;
      throw error;
    } finally {
      this.accounts.forgetRecent();
    }
  }

  async #store(applicationId: string, { link, account }: Linking, trx: Database): Promise<string> {
    if (link.account_id !== null) {
      const found = await this.accounts.reconnect(applicationId, link.account_id, account, trx);
      if (!found) throw new Undo({ kind: 'removed' });
      return link.account_id;
    }
    const inserted = await this.accounts.insert(applicationId, { ...account, scopeId: link.scope_id }, trx);
    if (inserted !== undefined) return inserted.id;
    const existing = await this.accounts.findLinked(applicationId, account.provider, account.providerUserId, trx);
    throw existing === undefined
      ? new Error('An account was removed while a link tried to link it.')
      : new Undo({ kind: 'exists', accountId: existing });
  }

  /** Cancels an open link. False if it is not open any more. */
  async cancel(applicationId: string, link: Link, sessionId: string): Promise<boolean> {
    return this.db.transaction().execute(async (trx) => {
      const open = await trx
        .updateTable('auth_links')
        .set({ status: 'cancelled', closed_at: new Date(this.clock()) })
        .where('application_id', '=', applicationId)
        .where('id', '=', link.id)
        .where('status', '=', 'open')
        .returning('id')
        .executeTakeFirst();
      if (open !== undefined) await this.sessions.close(sessionId, 'cancelled', trx);
      return open !== undefined;
    });
  }

  /**
   * Deletes links that ended 7 days ago, with their sessions, of all applications.
   * @param limit links per call
   * @returns how many links were deleted
   */
  async deleteOld(limit: number): Promise<number> {
    const { numDeletedRows } = await this.db
      .deleteFrom('auth_links')
      .where('id', 'in', (db) =>
        db
          .selectFrom('auth_links')
          .select('id')
          .where(({ fn }) => fn.coalesce('closed_at', 'expires_on'), '<', new Date(this.clock() - RETENTION_MS))
          .limit(limit)
          // Another process may do the same.
          .forUpdate()
          .skipLocked(),
      )
      .executeTakeFirstOrThrow();
    return Number(numDeletedRows);
  }
}

/**
 * The scope of a link may have been disabled or deleted since the link was made.
 * @throws ServiceError 403
 */
async function checkScope(applicationId: string, { scope_id: scopeId }: Link, trx: Database): Promise<void> {
  if (scopeId === null) return;
  await lockActiveScope(applicationId, scopeId, trx).catch((cause: unknown) => {
    if (!(cause instanceof ServiceError)) throw cause;
    throw new ServiceError(403, 'errors/feature_not_subscribed', 'The scope of the link is disabled or deleted.', {
      cause,
    });
  });
}
