import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Accounts } from '../accounts/accounts.ts';
import { Periodic } from '../jobs/periodic.ts';
import type { MailAccount, MailProvider, SentIds } from '../providers/provider.ts';
import type { Registry } from '../providers/registry.ts';
import type { Instances } from './instances.ts';
import type { MailAccounts } from './mail-accounts.ts';
import { LOOK_FOR_MS, type Send } from './send-records.ts';
import { GRACE_MS } from './sender.ts';
import type { Sends } from './sends.ts';

const EVERY_MS = 30_000;
/** Rows per sweep; the rest waits for the next one. */
const AT_ONCE = 100;
const CANCELED = {
  status: 409,
  type: 'errors/operation_canceled',
  detail: 'The process that sent the email ended before the provider received it. It was not sent.',
} as const;

interface SweeperParts {
  readonly sends: Sends;
  readonly instances: Instances;
  readonly accounts: Accounts;
  readonly mailAccounts: MailAccounts;
  readonly providers: Registry;
  readonly log: Logger;
  /** How long a provider may take to send an email. */
  readonly timeoutMs: number;
}

/** An account, and the mail of its provider. */
interface OpenMailbox {
  readonly mail: MailProvider;
  readonly account: MailAccount;
}

/** Finds out the outcomes of emails whose process died. It never sends anything: only a retry of the client does. */
export class Sweeper {
  readonly #periodic = new Periodic({ firstMs: EVERY_MS, everyMs: EVERY_MS }, () =>
    this.sweep().catch((error: unknown) => this.parts.log.error({ err: error }, 'the sweep of the journal failed')),
  );

  constructor(private readonly parts: SweeperParts) {}

  start(): void {
    this.#periodic.start();
  }

  close(): Promise<void> {
    return this.#periodic.close();
  }

  /** One sweep over the rows of all applications. */
  async sweep(): Promise<void> {
    const { sends, accounts, log, timeoutMs } = this.parts;
    const attemptMs = timeoutMs + GRACE_MS;
    await accounts.completeSyncs(AT_ONCE);
    await sends.old.forgetKeys(attemptMs);
    await sends.cancelAbandoned(attemptMs, CANCELED, AT_ONCE);
    for (const row of await sends.records.unsettled(attemptMs, AT_ONCE)) {
      // Another process, or the next start, looks up the rest.
      if (this.#periodic.signal.aborted) return;
      const owner = randomUUID();
      try {
        await this.#settle(row, owner);
      } catch (error) {
        log.warn({ send: row.id, err: error }, 'the outcome of an email could not be looked up');
        await this.#giveBack(row, owner).catch((error: unknown) =>
          log.warn({ send: row.id, err: error }, 'an email whose outcome could not be looked up was not given back'),
        );
      }
    }
    await this.#addIds();
  }

  /** Providers may show an email only moments after they sent it. Each sweep asks once, for an hour. */
  async #addIds(): Promise<void> {
    const { sends, log } = this.parts;
    for (const row of await sends.takeWithoutIds(AT_ONCE)) {
      if (this.#periodic.signal.aborted) return;
      const mailbox = await this.#mailboxOf(row);
      if (mailbox === undefined) continue;
      try {
        const ids = await this.#find(row, mailbox);
        if (ids !== undefined) await sends.addIds(row.application_id, row.id, ids);
      } catch (error) {
        log.warn({ send: row.id, err: error }, 'the ids of an email could not be looked up');
      }
    }
  }

  /** Returns a row whose look-up failed. Without an end, a mailbox that is out of reach would be asked for ever. */
  async #giveBack(row: Send, owner: string): Promise<void> {
    const { sends } = this.parts;
    const { application_id: applicationId, id, dispatched_at: since } = row;
    const waits = (row.draft_ref !== null && row.idempotency_key !== null) || this.#periodic.signal.aborted;
    if (waits || since === null || !sends.isOlder(since, LOOK_FOR_MS)) await sends.leave(applicationId, id, owner);
    else await sends.unknown(applicationId, id, owner);
  }

  async #settle(row: Send, owner: string): Promise<void> {
    const { sends, instances } = this.parts;
    const { application_id: applicationId, id, draft_ref: draft, idempotency_key: key } = row;
    if (!(await sends.adopt(applicationId, row, { owner, instanceId: instances.id }))) return;
    const mailbox = await this.#mailboxOf(row);
    if (mailbox === undefined) {
      await sends.unknown(applicationId, id, owner);
      return;
    }
    const { mail, account } = mailbox;
    // Without a key, no retry will ask for this email: its draft must not be sent any more.
    if (draft !== null && key === null && (await this.#timed((signal) => mail.discard(draft, account, signal)))) {
      await sends.failed(applicationId, id, owner, CANCELED);
      return;
    }
    const found = await this.#find(row, mailbox);
    if (found !== undefined) await sends.sent(applicationId, id, found);
    // The next request with this key sends the draft.
    else if (draft !== null && key !== null) await sends.leave(applicationId, id, owner);
    // A draft that was gone already may have been sent.
    else await sends.unknown(applicationId, id, owner);
  }

  /** The mailbox that an email was sent from. Undefined if it was removed, or if its provider is not installed. */
  async #mailboxOf(row: Send): Promise<OpenMailbox | undefined> {
    const { accounts, mailAccounts, providers } = this.parts;
    const account = await accounts.find(row.application_id, row.account_id);
    const mail = account && mailAccounts.mailOf(account, providers.find(account.provider));
    return account && mail && { mail, account: mailAccounts.of(account) };
  }

  #find(row: Send, { mail, account }: OpenMailbox): Promise<SentIds | undefined> {
    const trace = { messageId: row.message_id, draft: row.draft_ref };
    return this.#timed((signal) => mail.find(trace, account, signal));
  }

  /**
   * Provider calls with a deadline, also if the provider ignores the signal. The end of the process cuts them short.
   */
  async #timed<Result>(call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const signal = AbortSignal.any([this.#periodic.signal, AbortSignal.timeout(this.parts.timeoutMs)]);
    signal.throwIfAborted();
    const deadline = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    return Promise.race([call(signal), deadline]);
  }
}
