import { Readable } from 'node:stream';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Account, Accounts } from '../accounts/accounts.ts';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import type { Job, JobOutcome } from '../jobs/job.ts';
import type { Queue } from '../jobs/queue.ts';
import type { ComposedMail } from '../mail/mail.ts';
import type { CopyMessage, CopyResult, MailProvider, SentCopy } from '../providers/provider.ts';
import type { Registry } from '../providers/registry.ts';
import type { Envelope } from '../security/envelope.ts';
import type { MailAccounts } from './mail-accounts.ts';

/** The function `send_ended_1` in the database adds these jobs, with the outcome of the send. */
const KIND = 'sent-copy';
/** A larger message is not stored in the database. */
const MAX_STORED = 262_144;
/**
 * Copies of large messages that wait in this process. Their files use the disk space of attachments. An application
 * holds at most as many as are free, so it leaves room for others, also if its mail server does not answer.
 */
const MAX_HELD = 32;
const DEADLINE_MS = 60_000;
/** Copies that this process files at once. Each is in memory meanwhile. */
const AT_ONCE = 200;
/** Copies of an account that a process takes from the database at a time. */
const TOGETHER = 20;
/** How long to wait after each attempt, until the last one. */
const RETRIES_MS = [30_000, 300_000, 1_800_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000];
const HELD_RETRIES_MS = [30_000, 120_000];

/** The email that a copy is of. */
export interface CopyOf {
  readonly applicationId: string;
  readonly accountId: string;
  readonly sendId: string;
  readonly messageId: string;
}

/** A copy that belongs into the folder for sent emails. */
export type Copy =
  /** The whole message. It is stored with the outcome of the send. */
  | { readonly kind: 'small'; readonly message: Buffer }
  /** Only this process can make it. */
  | { readonly kind: 'large'; readonly mail: ComposedMail };

/** The large copies of one application that wait. They are filed one after the other. */
interface HeldCopies {
  count: number;
  last: Promise<void>;
}

/** A large copy that waits. */
interface HeldCopy {
  readonly of: CopyOf;
  readonly mail: ComposedMail;
  readonly sentAt: Date;
  readonly held: HeldCopies;
  end(): void;
}

interface SentCopiesParts {
  readonly db: Database;
  readonly envelope: Envelope;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly queue: Queue;
  readonly accounts: Accounts;
  readonly mailAccounts: MailAccounts;
  readonly providers: Registry;
  /** A larger message is not filed. */
  readonly maxBytes: number;
}

const place = (sendId: string): string => `sent_copies/${sendId}/message`;

/**
 * Files copies of sent emails for providers that keep none. A small copy is a job in the database, which every process
 * can do, also after a crash. A large copy is made from the files of its request, one at a time per application, and is
 * lost if this process ends before. An email is never filed twice: each attempt looks for it first.
 */
export class SentCopies {
  readonly #closing = new AbortController();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** By application. */
  readonly #held = new Map<string, HeldCopies>();

  constructor(private readonly parts: SentCopiesParts) {
    parts.queue.handle(KIND, {
      ...{ perLane: 1, atOnce: AT_ONCE, deadlineMs: DEADLINE_MS, together: TOGETHER },
      run: (job, signal) => this.#run(job, signal),
      deleteWith: (db, applicationId, subjects) =>
        db.with('sent_copy', (copy) =>
          copy
            .deleteFrom('sent_copies')
            .where('application_id', '=', applicationId)
            .where('send_id', '=', sql<string>`any(${subjects}::text[])`),
        ),
    });
  }

  /** The copy of an email that is being sent. Undefined if the provider needs none, or if it cannot be made. */
  async of(mail: ComposedMail, provider: MailProvider): Promise<Copy | undefined> {
    const { maxBytes } = this.parts;
    if (provider.fileCopy === undefined || maxBytes === 0) return undefined;
    try {
      const message = await readUpTo(openCopy(mail), Math.min(MAX_STORED, maxBytes));
      return message === undefined ? { kind: 'large', mail } : { kind: 'small', message };
    } catch (error) {
      // The email matters more than its copy.
      this.parts.log.warn({ err: error }, 'the copy of an email could not be made');
      return undefined;
    }
  }

  /** A small copy, as the database stores it. */
  sealed(sendId: string, message: Buffer): Uint8Array {
    return this.parts.envelope.seal(place(sendId), message);
  }

  /** Files a large copy soon. Its files are held until then. */
  hold(of: CopyOf, mail: ComposedMail): void {
    const { log, clock } = this.parts;
    const held = this.#held.get(of.applicationId) ?? { count: 0, last: Promise.resolve() };
    const all = [...this.#held.values()].reduce((sum, { count }) => sum + count, 0);
    if (held.count >= MAX_HELD - all) {
      log.warn({ send: of.sendId }, 'too many large emails wait to be filed; this one is not filed');
      return;
    }
    held.count++;
    this.#held.set(of.applicationId, held);
    const free = mail.hold();
    const end = (): void => {
      held.count--;
      if (held.count === 0) this.#held.delete(of.applicationId);
      void free();
    };
    this.#fileHeld({ of, mail, sentAt: new Date(clock()), held, end }, HELD_RETRIES_MS);
  }

  /** Ends the filing of large copies. The queue ends by itself. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all([...this.#held.values()].map(({ last }) => last));
  }

  /** One attempt of a job. */
  async #run({ applicationId, subject, attempt }: Job, signal: AbortSignal): Promise<JobOutcome> {
    const { db, envelope, accounts, log } = this.parts;
    const row = await db
      .selectFrom('sent_copies')
      .innerJoin('sends', 'sends.id', 'sent_copies.send_id')
      .select(['sent_copies.account_id', 'sent_copies.message', 'sent_copies.created_at', 'sends.message_id'])
      .where('sent_copies.application_id', '=', applicationId)
      .where('sent_copies.send_id', '=', subject)
      .executeTakeFirst();
    if (row === undefined) return 'done';
    const account = await accounts.find(applicationId, row.account_id);
    try {
      if (account !== undefined) {
        const measure = async (): Promise<CopyMessage> => {
          const message = envelope.open(place(subject), row.message);
          return { size: message.length, open: () => Readable.from(message) };
        };
        await this.#file(account, subject, { messageId: row.message_id, sentAt: row.created_at, measure }, signal);
      }
    } catch (error) {
      const retryInMs = RETRIES_MS[attempt - 1];
      if (retryInMs !== undefined) {
        log.info({ err: error, send: subject, attempt }, 'a sent email could not be filed yet');
        return { retryInMs };
      }
      log.warn({ err: error, send: subject }, 'a sent email was not filed');
    }
    return 'done';
  }

  /** Files large copies one after the other: the sends that follow need the disk and the processor more. */
  #fileHeld(copy: HeldCopy, retriesMs: readonly number[]): void {
    const { of, mail, sentAt, held, end } = copy;
    const { accounts, log, maxBytes } = this.parts;
    const attempt = async (): Promise<void> => {
      if (this.#closing.signal.aborted) return end();
      const [retryInMs, ...laterMs] = retriesMs;
      try {
        const account = await accounts.find(of.applicationId, of.accountId);
        const measure = () => measured(() => openCopy(mail), maxBytes);
        const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(DEADLINE_MS)]);
        if (account !== undefined)
          await this.#file(account, of.sendId, { messageId: of.messageId, sentAt, measure }, signal);
        end();
      } catch (error) {
        if (this.#closing.signal.aborted || retryInMs === undefined) {
          log.warn({ err: error, send: of.sendId }, 'a large sent email was not filed');
          return end();
        }
        log.info({ err: error, send: of.sendId }, 'a large sent email could not be filed yet');
        const timer = setTimeout(() => {
          this.#timers.delete(timer);
          this.#fileHeld(copy, laterMs);
        }, retryInMs);
        this.#timers.add(timer.unref());
      }
    };
    held.last = held.last.then(attempt);
  }

  async #file(account: Account, sendId: string, copy: SentCopy, signal: AbortSignal): Promise<void> {
    const { providers, mailAccounts, log } = this.parts;
    const provider = providers.find(account.provider)?.mail;
    const result: CopyResult | undefined = await provider?.fileCopy?.(copy, mailAccounts.of(account), signal);
    if (result === 'no_folder') log.info({ send: sendId }, 'the mailbox has no folder for sent emails');
    if (result === 'too_large') log.info({ send: sendId }, 'a sent email is too large to be filed');
  }
}

/** The recipients of `bcc` are the sender's to know. A tracked copy would count the sender's own visits. */
const openCopy = (mail: ComposedMail): Readable => mail.open({ keepBcc: true, untracked: true });

/** A message, whose size IMAP must know first; undefined if it is longer than this. */
async function measured(open: () => Readable, maxBytes: number): Promise<CopyMessage | undefined> {
  let size = 0;
  for await (const chunk of open() as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
  }
  return { size, open };
}

/** A whole stream; undefined if it is longer than this. */
async function readUpTo(stream: Readable, maxBytes: number): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Leaving the loop destroys the stream.
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
