import type { Selectable } from 'kysely';
import type { AccountRow } from '../db/tables.ts';
import type { AutoProxy, CustomProxy } from '../domain/proxy.ts';
import type { Envelope } from '../security/envelope.ts';

/** The parts of an account that are sealed in the database. */
export interface AccountSecret {
  /** As the provider made it when the account was linked, or when it was renewed. */
  readonly credentials: unknown;
  readonly proxy?: CustomProxy | undefined;
  /** The place that `auto_proxy_config` or the user chose. It is only stored: the service runs no proxies. */
  readonly autoProxy?: AutoProxy | undefined;
}

const place = (id: string): string => `accounts/${id}/secret`;

/** Seals and opens the secrets of accounts. */
export class AccountSecrets {
  constructor(private readonly envelope: Envelope) {}

  seal(id: string, secret: AccountSecret): Uint8Array {
    return this.envelope.sealJson(place(id), secret);
  }

  open({ id, secret }: Pick<Selectable<AccountRow>, 'id' | 'secret'>): AccountSecret {
    if (secret === null) throw new Error(`The account ${id} has no secret.`);
    return this.envelope.openJson<AccountSecret>(place(id), secret);
  }
}
