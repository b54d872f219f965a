import { Readable } from 'node:stream';
import type { KeptResult, Reconciled } from 'headgate/idempotency';
import { ServiceError } from '../domain/service-error.ts';
import type { ComposedMail } from '../mail/mail.ts';
import { type MailAccount, type MailProvider, ProviderError, type SentIds } from '../providers/provider.ts';
import { publishStep } from './claims.ts';
import { callInTime } from './provider-call.ts';
import type { NewSend } from './send-notes.ts';
import { isVerdict, type SendResult, storedSent } from './send-outcome.ts';
import type { Send } from './send-records.ts';
import type { Sends } from './sends.ts';
import type { SentCopies } from './sent-copies.ts';

/** An account, and the mail of its provider. */
export interface OpenMailbox {
  readonly mail: MailProvider;
  readonly mailAccount: MailAccount;
}

/** A requested send, with its email and the provider that sends it. */
export interface SendRequest extends OpenMailbox {
  readonly send: NewSend;
  /** Makes the email. An error here is harmless: nothing was sent yet. */
  compose(id: string): ComposedMail | Promise<ComposedMail>;
}

/** The claim of a send: a passage of the gate has these methods. Its owner completes or releases it after the send. */
export interface SendClaim {
  /** Rejects if the email must not be sent. */
  dispatch(note?: unknown): Promise<void>;
  /** The rows of the outcome. */
  noteOutcome(note: unknown): void;
  /** Neither completes nor releases the claim: the email may be sent. */
  leave(): Promise<void>;
  /** Does work once the outcome is written. */
  afterwards(work: () => Promise<void>): void;
}

/** How long after its deadline an attempt may still be working. */
export const GRACE_MS = 30_000;

const unknownOutcome = (id: string): ServiceError =>
  new ServiceError(
    409,
    'errors/conflict',
    `It is not known whether the email ${id} was sent, so it is not sent again. GET /v2/emails/${id} shows if this becomes known.`,
  );

/** One attempt to send an email, and how far it came. */
interface Attempt {
  readonly request: SendRequest;
  /** Of the send. */
  readonly id: string;
  readonly claim: SendClaim;
  /** Another attempt owns the claim, or the database does not answer: the owner of the claim knows which. */
  isRefused: boolean;
  hasRow: boolean;
  /** Whether the provider may send the email. */
  isDispatched: boolean;
  /** Whether the draft is gone, and so it may have been sent. */
  mayBeSent: boolean;
  draft: string | null;
}

/** A draft is gone, and so it was sent or deleted, but its email cannot be found. */
class NoTrace extends ProviderError {
  constructor() {
    super('unknown', 504, 'errors/request_timeout', 'The provider does not show the email yet. Try again.');
  }
}

/**
 * Sends each email at most once, across retries, processes and crashes. The claim of its key is the fence: it is
 * dispatched before a draft is sent, or before the provider gets the end of an email without a draft. After a crash, a
 * draft is sent again (a provider sends a draft once); an email without a draft is looked for, and never sent a second
 * time.
 */
export class Sender {
  constructor(
    private readonly sends: Sends,
    private readonly timeoutMs: number,
    private readonly copies?: SentCopies,
  ) {}

  /**
   * Sends the email. The caller then completes the claim if the email was sent, or if a verdict of the provider is thrown,
   * and releases it after any other error.
   * @param id of the send, new
   * @throws ServiceError. A ProviderError comes from the provider: its `sent` says whether the email may be out
   */
  async send(request: SendRequest, id: string, claim: SendClaim): Promise<SendResult> {
    publishStep('taken');
    const { send, mail, mailAccount } = request;
    const attempt: Attempt = {
      ...{ request, id, claim, draft: null },
      ...{ isRefused: false, hasRow: false, isDispatched: false, mayBeSent: false },
    };
    try {
      const composed = await request.compose(id);
      const isFenced = mail.isFenced(mailAccount);
      // It is made while the provider answers.
      const copying = isFenced ? undefined : this.copies?.of(composed, mail);
      const ids = isFenced ? await this.#sendAsDraft(attempt, composed) : await this.#sendDirectly(attempt, composed);
      publishStep('sent');
      const copy = await copying;
      const small = copy?.kind === 'small' ? this.copies?.sealed(id, copy.message) : undefined;
      claim.noteOutcome(this.sends.notes.sent({ id, label: send.label }, ids, { copy: small }));
      if (copy?.kind === 'large') this.copies?.hold({ ...send, sendId: id }, copy.mail);
      return { id, providerId: ids.providerId, immutableId: ids.immutableId };
    } catch (error) {
      await this.#end(attempt, error);
      throw error;
    }
  }

  async #sendAsDraft(attempt: Attempt, composed: ComposedMail): Promise<SentIds> {
    const { send, mail, mailAccount } = attempt.request;
    const draft = await this.#timed((signal) => mail.draft(composed, mailAccount, signal));
    attempt.draft = draft;
    publishStep('drafted');
    await this.#dispatch(attempt);
    attempt.isDispatched = true;
    publishStep('dispatched');
    return this.#sendDraft({ mail, mailAccount }, draft, send.messageId, () => {
      attempt.mayBeSent = true;
    });
  }

  /**
   * Sends an email that has no draft. The claim is dispatched when the provider read everything but the end of the
   * message: a message without its end reaches nobody, so a crash before that leaves nothing unknown.
   */
  async #sendDirectly(attempt: Attempt, composed: ComposedMail): Promise<SentIds> {
    const { mail, mailAccount } = attempt.request;
    let dispatching: Promise<void> | undefined;
    let fault: unknown;
    const dispatch = async (signal: AbortSignal): Promise<void> => {
      try {
        await this.#dispatch(attempt);
        // This attempt was given up while the row was written: the next one sends the email.
        signal.throwIfAborted();
      } catch (error) {
        fault = error;
        throw error;
      }
      attempt.isDispatched = true;
      publishStep('dispatched');
    };
    return this.#timed((signal) => {
      const open: ComposedMail['open'] = (parts) =>
        endingAfter(composed.open(parts), () => {
          dispatching ??= dispatch(signal);
          return dispatching;
        });
      return mail.send({ ...composed, open }, mailAccount, signal).catch((error: unknown) => {
        throw fault ?? error;
      });
    });
  }

  async #dispatch(attempt: Attempt): Promise<void> {
    const { request, id, claim, draft } = attempt;
    attempt.isRefused = true;
    await claim.dispatch(this.sends.notes.begun(request.send, id, draft));
    attempt.isRefused = false;
    attempt.hasRow = true;
  }

  /** Sends a draft. If the draft is gone, it was sent, and its email is looked for. */
  async #sendDraft(
    { mail, mailAccount }: OpenMailbox,
    draft: string,
    messageId: string,
    onGone?: () => void,
  ): Promise<SentIds> {
    const sent = await this.#timed((signal) => mail.sendDraft(draft, mailAccount, signal));
    if (sent !== undefined) return sent;
    onGone?.();
    const found = await this.#timed((signal) => mail.find({ messageId, draft }, mailAccount, signal));
    if (found === undefined) throw new NoTrace();
    return found;
  }

  /** The end of an attempt that did not send the email, or does not know it. */
  async #end(
    { request, id, claim, isRefused, hasRow, isDispatched, mayBeSent, draft }: Attempt,
    error: unknown,
  ): Promise<void> {
    const { send, mail, mailAccount } = request;
    if (isRefused) return;
    if (isDispatched && (mayBeSent || !saysUnsent(error))) return claim.leave();
    if (draft !== null && (isDispatched || error instanceof ServiceError))
      // First the row: it must not point to a draft that is gone. A draft that stays behind is only untidy.
      claim.afterwards(async () => {
        await this.#timed((signal) => mail.discard(draft, mailAccount, signal)).catch(() => undefined);
      });
    // The key of any other email is free again, and its row is taken away.
    if (!isVerdict(error) && send.idempotencyKey !== null) return;
    // A claim without dispatch would be released.
    if (!hasRow && isVerdict(error)) await claim.dispatch();
    const { status, type, message: detail } = error instanceof ServiceError ? error : INTERNAL;
    const { notes } = this.sends;
    const row = hasRow ? {} : { send: notes.begun(send, id, null) };
    claim.noteOutcome(notes.failed({ id, label: send.label }, { status, type, detail }, row));
  }

  /**
   * Finishes a send whose attempt ended after the dispatch without an outcome. It never sends a second email.
   * @throws ServiceError if the outcome is not known: the error of the provider, or 409 if it will not become known
   */
  async resume(row: Send, mailbox: OpenMailbox): Promise<Reconciled<KeptResult>> {
    const { message_id: messageId, draft_ref: draft } = row;
    const { mail, mailAccount } = mailbox;
    let ids: SentIds | undefined;
    try {
      ids =
        draft === null
          ? await this.#timed((signal) => mail.find({ messageId, draft }, mailAccount, signal))
          : await this.#sendDraft(mailbox, draft, messageId);
    } catch (error) {
      if (!(error instanceof NoTrace) || !this.#isOver(row)) throw error;
    }
    if (ids !== undefined) return this.found(row, ids);
    await this.sends.unknown(row);
    throw unknownOutcome(row.id);
  }

  /** The outcome of an email that was found. */
  found(row: Send, ids: SentIds) {
    const result = storedSent({ id: row.id, providerId: ids.providerId, immutableId: ids.immutableId });
    return { done: true as const, result, note: this.sends.notes.sent(row, ids) };
  }

  async #timed<Result>(call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    return callInTime(this.timeoutMs, call);
  }

  /** Whether the time of the attempt that dispatched the row is over. */
  #isOver({ dispatched_at: since }: Send): boolean {
    return since === null || this.sends.isOlder(since, this.timeoutMs + GRACE_MS);
  }
}

const INTERNAL = new ServiceError(500, 'errors/unexpected_error', 'Internal error. The email was not sent.');

const saysUnsent = (error: unknown): boolean => error instanceof ProviderError && error.sent === 'no';

/** The bytes of a stream. Its end comes after `before` is done. */
function endingAfter(source: Readable, before: () => Promise<void>): Readable {
  async function* chunks() {
    yield* source;
    await before();
  }
  return Readable.from(chunks(), { objectMode: false });
}
