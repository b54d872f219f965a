import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import { newId } from '../domain/ids.ts';
import { type Environment, hashOf, newToken, prefixOf, type Role } from '../domain/key-token.ts';

/** Who makes a request: what its key may reach. */
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

/** What a new key may do. */
export interface NewKey {
  readonly name: string;
  readonly role: Role;
  readonly scopeId: string | null;
  readonly expiresAt: Date;
}

/** API keys. */
export class Keys {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  /** Creates a key. Its token is returned here and never again. */
  async create(
    applicationId: string,
    environment: Environment,
    { name, role, scopeId, expiresAt }: NewKey,
  ): Promise<{ readonly id: string; readonly token: string }> {
    const now = this.clock();
    const token = newToken(role, environment);
    const id = newId('key', now);
    await this.db
      .insertInto('api_keys')
      .values({
        id,
        application_id: applicationId,
        role,
        scope_id: scopeId,
        name,
        prefix: prefixOf(token),
        token_hash: hashOf(token),
        issued_at: new Date(now),
        expires_at: expiresAt,
      })
      .execute();
    return { id, token };
  }

  /** Finds the key of a token. Undefined if no key has it, or if the key is revoked; an expired key is found. */
  async resolve(token: string): Promise<Caller | undefined> {
    const row = await this.db
      .selectFrom('api_keys as key')
      .innerJoin('applications as application', 'application.id', 'key.application_id')
      .leftJoin('scopes as scope', 'scope.id', 'key.scope_id')
      .select(['key.id', 'key.application_id', 'key.role', 'key.scope_id', 'key.expires_at'])
      .select(['application.environment', 'scope.status as scope_status'])
      .where('key.token_hash', '=', hashOf(token))
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
