import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Accounts } from '../accounts/accounts.ts';
import type { MailProvider } from '../providers/provider.ts';
import type { Registry } from '../providers/registry.ts';
import type { Instances } from './instances.ts';
import { mailAccountOf } from './mail-account.ts';
import { GRACE_MS } from './sender.ts';
import type { Send, Sends } from './sends.ts';

const EVERY_MS = 30_000;
/** Rows per sweep; the rest waits for the next one. */
const AT_ONCE = 100;
const CANCELED = {
  status: 409,
  type: 'errors/operation_canceled',
  detail: 'The process that sent the email ended before the provider had it. It was not sent.',
} as const;

interface SweeperParts {
  readonly sends: Sends;
  readonly instances: Instances;
  readonly accounts: Accounts;
  readonly providers: Registry;
  readonly log: Logger;
  /** How long a provider may take to send an email. */
  readonly timeoutMs: number;
}

/** Finds out what became of emails whose process died. It never sends anything: only a retry of the client does. */
export class Sweeper {
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;

  constructor(private readonly parts: SweeperParts) {}

  start(): void {
    this.#timer = setInterval(() => {
      this.#sweeping ??= this.sweep()
        .catch((error: unknown) => this.parts.log.error({ err: error }, 'the sweep of the journal failed'))
        .finally(() => {
          this.#sweeping = undefined;
        });
    }, EVERY_MS);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  /** One sweep over the rows of all applications. */
  async sweep(): Promise<void> {
    const { sends, log, timeoutMs } = this.parts;
    await sends.forgetKeys();
    await sends.cancelAbandoned(timeoutMs + GRACE_MS, CANCELED);
    for (const row of await sends.unsettled(timeoutMs + GRACE_MS, AT_ONCE)) {
      try {
        await this.#settle(row);
      } catch (error) {
        log.warn({ send: row.id, err: error }, 'the outcome of an email could not be looked up');
      }
    }
  }

  async #settle(row: Send): Promise<void> {
    const { sends, instances, accounts, providers, timeoutMs } = this.parts;
    const { application_id: applicationId, id } = row;
    const owner = randomUUID();
    if (!(await sends.adopt(applicationId, row, { owner, instanceId: instances.id }))) return;
    const account = await accounts.find(applicationId, row.account_id);
    const mail: MailProvider | undefined = account && providers.find(account.provider)?.mail;
    if (account === undefined || mail === undefined) {
      await sends.unknown(applicationId, id, owner);
      return;
    }
    const mailAccount = mailAccountOf(accounts, account);
    const signal = AbortSignal.timeout(timeoutMs);
    // Without a key, no retry will ask for this email: its draft must not be sent any more.
    const isAbandoned = row.draft_ref !== null && row.idempotency_key === null;
    if (isAbandoned) await mail.discard(row.draft_ref ?? '', mailAccount, signal);
    const found = await mail.find(row.message_id, mailAccount, signal);
    if (found !== undefined) await sends.sent(applicationId, id, found);
    else if (isAbandoned) await sends.failed(applicationId, id, owner, CANCELED);
    // The next request with this key sends the draft.
    else if (row.draft_ref !== null) await sends.leave(applicationId, id, owner);
    else await sends.unknown(applicationId, id, owner);
  }
}
