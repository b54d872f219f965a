import { isDeepStrictEqual } from 'node:util';
import type { Selectable } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../db/database.ts';
import type { AccountRow } from '../db/tables.ts';
import type { Clock } from '../domain/clock.ts';
import type { Events, EventType } from '../webhooks/events.ts';

/** The columns that decide the status of an account. */
type Health = Pick<Selectable<AccountRow>, 'status' | 'status_reason' | 'auth_failed_at'>;
/** The account that a provider was called for, as it was read before the call. */
type Called = Health & Pick<Selectable<AccountRow>, 'id' | 'application_id' | 'connected_at'>;

/** A second refusal within this time disconnects the account. One alone may be a mistake of the provider. */
const AUTH_WINDOW_MS = 60_000;

const EVENTS: Readonly<Record<Health['status'], EventType>> = {
  running: 'account.recovered',
  error: 'account.errored',
  disconnected: 'account.disconnected',
};

/** Changes the status of an account by the results of the calls to its provider. */
export class AccountHealth {
  constructor(
    private readonly db: Database,
    private readonly events: Events,
    private readonly clock: Clock,
    private readonly log: Pick<Logger, 'warn'>,
    /** Is called after each change. */
    private readonly onChange: () => void = () => undefined,
  ) {}

  /** Notes a successful call. Asks the database only if the account was not well before. */
  async succeeded(account: Called): Promise<void> {
    if (account.status === 'error' || account.auth_failed_at !== null) await this.#note(account, afterSuccess);
  }

  /** Notes a call that ended with an error of the provider. */
  async failed(account: Called, type: string): Promise<void> {
    if (isAboutAccount(type)) await this.#note(account, (health) => afterError(health, type, this.clock()));
  }

  /** The status comes second: a failure here must not hide the result of the call. */
  async #note(account: Called, next: (health: Health) => Health): Promise<void> {
    await this.#change(account, next).catch((error: unknown) =>
      this.log.warn({ account: account.id, err: error }, 'the status of an account was not written'),
    );
    this.onChange();
  }

  async #change({ id, application_id, connected_at }: Called, next: (health: Health) => Health): Promise<void> {
    await this.db.transaction().execute(async (transaction) => {
      const row = await transaction
        .selectFrom('accounts')
        .select(['provider', 'scope_id', 'status', 'status_reason', 'auth_failed_at'])
        .where('application_id', '=', application_id)
        .where('id', '=', id)
        .where('removed_at', 'is', null)
        // A result with the credentials from before a reconnection says nothing about the new ones.
        .where('connected_at', '=', connected_at)
        .forUpdate()
        .executeTakeFirst();
      if (row === undefined) return;
      const { provider, scope_id, ...before } = row;
      const after = next(before);
      if (isDeepStrictEqual(before, after)) return;
      const { status, status_reason } = after;
      await transaction
        .updateTable('accounts')
        .set(after)
        .where('application_id', '=', application_id)
        .where('id', '=', id)
        .execute();
      if (status === before.status) return;
      const reason = status_reason === null ? {} : { reason: status_reason };
      const data = { provider, scope_id, ...reason };
      await this.events.add(application_id, { type: EVENTS[status], accountId: id, data }, transaction);
    });
  }
}

const isRefusal = (type: string): boolean => type.startsWith('errors/invalid_credentials');
const isAway = (type: string): boolean => type === 'errors/network_down' || type === 'errors/service_unavailable';
const isAboutAccount = (type: string): boolean =>
  type === 'errors/disconnected_account' || isRefusal(type) || isAway(type);

/** Only the user connects a disconnected account again: a call that succeeds may be older than the disconnection. */
const afterSuccess = (health: Health): Health =>
  health.status === 'disconnected' ? health : { status: 'running', status_reason: null, auth_failed_at: null };

function afterError(health: Health, type: string, now: number): Health {
  if (health.status === 'disconnected') return health;
  if (isAway(type)) return { ...health, status: 'error', status_reason: type };
  const { auth_failed_at: before } = health;
  const isFirst = isRefusal(type) && (before === null || before.getTime() < now - AUTH_WINDOW_MS);
  if (isFirst) return { ...health, auth_failed_at: new Date(now) };
  return { status: 'disconnected', status_reason: type, auth_failed_at: null };
}
