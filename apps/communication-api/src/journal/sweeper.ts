import type { Idempotency } from 'headgate';
import type { KeptResult, Reconciled } from 'headgate/idempotency';
import type { Logger } from 'pino';
import type { Accounts } from '../accounts/accounts.ts';
import { Periodic } from '../jobs/periodic.ts';
import type { SentIds } from '../providers/provider.ts';
import type { Registry } from '../providers/registry.ts';
import { claimKeyOf, KEY_RETENTION_MS } from './claims.ts';
import type { MailAccounts } from './mail-accounts.ts';
import { LOOK_FOR_MS, type Send } from './send-records.ts';
import { GRACE_MS, type OpenMailbox, type Sender } from './sender.ts';
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
  readonly idempotency: Pick<Idempotency, 'reconcileWith'>;
  readonly sends: Sends;
  readonly sender: Pick<Sender, 'found'>;
  readonly accounts: Accounts;
  readonly mailAccounts: MailAccounts;
  readonly providers: Registry;
  readonly log: Logger;
  /** How long a provider may take to send an email. */
  readonly timeoutMs: number;
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
    await accounts.completeSyncs(AT_ONCE);
    await sends.old.forgetKeys();
    for (const row of await sends.records.unsettled(timeoutMs + GRACE_MS, AT_ONCE)) {
      // Another process, or the next start, looks up the rest.
      if (this.#periodic.signal.aborted) return;
      try {
        await this.#settle(row);
      } catch (error) {
        log.warn({ send: row.id, err: error }, 'the outcome of an email could not be looked up');
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

  async #settle(row: Send): Promise<void> {
    const { idempotency, sends } = this.parts;
    const { application_id: scope, idempotency_key, id, draft_ref: draft, dispatched_at: since } = row;
    if (!(await sends.look(row))) return;
    const hasKey = idempotency_key !== null && since !== null && !sends.isOlder(since, KEY_RETENTION_MS);
    const mailbox = await this.#mailboxOf(row);
    let failure: unknown;
    const claim = { scope, key: claimKeyOf(idempotency_key, id) };
    const outcome = await idempotency.reconcileWith(claim, async () => {
      try {
        return mailbox === undefined ? 'unknown' : await this.#lookFor(row, mailbox, hasKey);
      } catch (error) {
        failure = error;
        return 'unknown';
      }
    });
    if (!['unknown', 'absent', 'not_dispatched'].includes(outcome)) return;
    // The next request with this key sends the draft.
    const isWaiting = draft !== null && hasKey && mailbox !== undefined;
    // Without an end, a mailbox that is out of reach would be asked for ever.
    const isAskedAgain = failure !== undefined && (since === null || !sends.isOlder(since, LOOK_FOR_MS));
    if (!isWaiting && !isAskedAgain && !this.#periodic.signal.aborted) await sends.unknown(row);
    if (failure !== undefined) throw failure;
  }

  /** @param hasKey whether a retry may ask for this email */
  async #lookFor(row: Send, mailbox: OpenMailbox, hasKey: boolean): Promise<Reconciled<KeptResult>> {
    const { sender, sends } = this.parts;
    const { draft_ref: draft } = row;
    const { mail, mailAccount } = mailbox;
    // No retry will ask for this email: its draft must not be sent any more.
    if (draft !== null && !hasKey && (await this.#timed((signal) => mail.discard(draft, mailAccount, signal))))
      return { done: false, note: sends.notes.failed(row, CANCELED) };
    const found = await this.#find(row, mailbox);
    return found === undefined ? 'unknown' : sender.found(row, found);
  }

  /** The mailbox that an email was sent from. Undefined if it was removed, or if its provider is not installed. */
  async #mailboxOf(row: Send): Promise<OpenMailbox | undefined> {
    const { accounts, mailAccounts, providers } = this.parts;
    const account = await accounts.find(row.application_id, row.account_id);
    const mail = account && mailAccounts.mailOf(account, providers.find(account.provider));
    return account && mail && { mail, mailAccount: mailAccounts.of(account) };
  }

  #find(row: Send, { mail, mailAccount }: OpenMailbox): Promise<SentIds | undefined> {
    const trace = { messageId: row.message_id, draft: row.draft_ref };
    return this.#timed((signal) => mail.find(trace, mailAccount, signal));
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
