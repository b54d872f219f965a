import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { json } from '../db/json.ts';
import type { AccountRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import { startSync } from '../domain/initial-sync.ts';
import type { AutoProxy, CustomProxy } from '../domain/proxy.ts';
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

  /** Credentials and proxy of an account. */
  secretOf({ id, secret }: Account): AccountSecret {
    if (secret === null) throw new Error(`The account ${id} has no secret.`);
    return this.envelope.openJson<AccountSecret>(place(id), secret);
  }
}
