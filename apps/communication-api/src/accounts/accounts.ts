import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { json } from '../db/json.ts';
import type { AccountRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import { isId, newId } from '../domain/ids.ts';
import type { Envelope } from '../security/envelope.ts';

export type Account = Selectable<AccountRow>;

/** A proxy, as it is configured. */
export interface Proxy {
  readonly protocol: 'http' | 'https' | 'socks4' | 'socks5';
  readonly host: string;
  readonly port: number;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** What is sealed beside an account. */
export interface AccountSecret {
  /** As the provider made it when the account was linked. */
  readonly credentials: unknown;
  readonly proxy?: Proxy | undefined;
}

/** An account that a provider has identified. */
export interface NewAccount {
  readonly provider: string;
  readonly providerUserId: string;
  readonly name: string;
  readonly scopeId: string | null;
  readonly secret: AccountSecret;
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
    { provider, providerUserId, name, scopeId, secret }: NewAccount,
    db: Database = this.db,
  ): Promise<Account | undefined> {
    const now = this.clock();
    const id = newId('acc', now);
    const { password: _, ...shown } = secret.proxy ?? {};
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
        proxy: json(secret.proxy === undefined ? null : shown),
        sync: json({ status: 'completed', started_at: new Date(now).toISOString() }),
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
