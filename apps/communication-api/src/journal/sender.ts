import { channel } from 'node:diagnostics_channel';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../db/database.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { ComposedMail } from '../mail/mail.ts';
import { type MailAccount, type MailProvider, ProviderError, type SentIds } from '../providers/provider.ts';
import type { Instances } from './instances.ts';
import { LateWrites } from './late-writes.ts';
import { callInTime } from './provider-call.ts';
import { isVerdict, outcomeOf, type SendResult } from './send-outcome.ts';
import type { Send } from './send-records.ts';
import type { Attempt, NewSend, Sends } from './sends.ts';
import type { Copy, SentCopies } from './sent-copies.ts';

/** A requested send, with its email and the provider that sends it. */
export interface SendRequest {
  readonly send: NewSend;
  readonly mailAccount: MailAccount;
  readonly mail: MailProvider;
  /**
   * Makes the email. An error here is harmless: nothing was sent yet.
   * @param id the id of the send: an earlier attempt with the same key may have chosen it
   */
  compose(id: string): ComposedMail | Promise<ComposedMail>;
}

/** The steps of a send, as they are published on the diagnostics channel `communication-api:send`. */
export type SendStep = 'asked' | 'taken' | 'drafted' | 'dispatched' | 'sent' | 'settled';

const steps = channel('communication-api:send');
/** How long after its deadline an attempt may still be working. */
export const GRACE_MS = 30_000;
const SETTLE_ATTEMPTS = 3;
/** When a client should try again, in seconds. */
const RETRY_SECONDS = 5;

const inFlight = (): ServiceError =>
  new ServiceError(
    409,
    'errors/conflict',
    'An earlier request with this Idempotency-Key is still sending. Try again.',
    {
      retryAfter: RETRY_SECONDS,
    },
  );

const unknownOutcome = (id: string): ServiceError =>
  new ServiceError(
    409,
    'errors/conflict',
    `It is not known whether the email ${id} was sent, so it is not sent again. GET /v2/emails/${id} shows if this becomes known.`,
  );

/** The call that a recipient can see, and the draft that it sends. */
interface Effect {
  readonly draft: string | null;
  /** Whether an error of the call proves that the email is not out. */
  isUnsent(error: unknown): boolean;
  /** The email, if the provider may not store a copy of it by itself. */
  readonly mail?: ComposedMail;
  call(): Promise<SentIds>;
}

/** A draft is gone, and so it was sent or deleted, but its email cannot be found. */
class NoTrace extends ProviderError {
  constructor() {
    super('unknown', 504, 'errors/request_timeout', 'The provider does not show the email yet. Try again.');
  }
}

/**
 * Sends each email at most once, across retries, processes and crashes. The journal's row is the fence: it is marked
 * before a draft is sent, or before the provider gets the end of an email without a draft. After a crash, a draft is
 * sent again (a provider sends a draft once); an email without a draft is looked for, and never sent a second time.
 */
export class Sender {
  readonly #running = new Set<Promise<unknown>>();
  readonly #late = new LateWrites();

  constructor(
    private readonly sends: Sends,
    private readonly instances: Instances,
    private readonly timeoutMs: number,
    private readonly copies?: SentCopies,
  ) {}

  /**
   * The outcome of an earlier request with the same idempotency key, if there is one.
   * @throws ServiceError the stored error, or 409 if the key belongs to another request
   */
  async settled(
    request: Pick<NewSend, 'applicationId' | 'idempotencyKey' | 'fingerprint'>,
  ): Promise<SendResult | undefined> {
    const row = await this.#rowOf(request);
    return row && outcomeOf(row);
  }

  /**
   * Sends the email, or returns the outcome of an earlier request with the same key.
   * @param owner names this attempt, uniquely
   * @throws ServiceError. A ProviderError comes from the provider: its `sent` says whether the email may be out
   */
  async send(request: SendRequest, owner: string): Promise<SendResult> {
    const sending = this.#send(request, owner);
    this.#running.add(sending);
    try {
      return await sending;
    } finally {
      this.#running.delete(sending);
    }
  }

  /** How many sends run in this process, also the sends whose client left. */
  get running(): number {
    return this.#running.size + this.#late.size;
  }

  /** Waits for the end of the sends that run. */
  async idle(): Promise<void> {
    while (this.running > 0) await Promise.allSettled([...this.#running, this.#late.idle()]);
  }

  async #send(request: SendRequest, owner: string): Promise<SendResult> {
    const attempt: Attempt = { owner, instanceId: this.instances.id };
    publish('asked', owner);
    const taken = await this.sends.take(request.send, attempt);
    if (taken === undefined) return this.#resume(request, attempt);
    publish('taken', owner);
    const effect = await this.#prepare(request, taken.id, owner);
    return this.#finish(request, taken.id, owner, effect);
  }

  /** Everything before the call that a recipient can see. Returns that call. */
  async #prepare(request: SendRequest, id: string, owner: string): Promise<Effect> {
    const { send, mail, mailAccount } = request;
    let draft: string | null = null;
    let isMarked: boolean | undefined;
    try {
      const composed = await request.compose(id);
      if (!mail.isFenced(mailAccount)) return this.#directEffect(request, id, owner, composed);
      draft = await this.#timed((signal) => mail.draft(composed, mailAccount, signal));
      publish('drafted', owner);
      isMarked = await this.sends.dispatch(send.applicationId, id, owner, draft);
      if (!isMarked) throw inFlight();
      publish('dispatched', owner);
      return this.#draftEffect(request, draft, false);
    } catch (error) {
      const isOurs = await this.#writeUnsent(send, id, owner, error).catch(() => false);
      // If the answer to the mark was lost, another attempt may own the row by now, and with it the draft.
      if (draft !== null && (isOurs || isMarked === false)) await this.#discard(request, draft);
      throw error;
    }
  }

  /**
   * Sends an email that has no draft. The mark is set when the provider read everything but the end of the message:
   * a message without its end reaches nobody, so a crash before that leaves nothing unknown.
   */
  #directEffect({ send, mail, mailAccount }: SendRequest, id: string, owner: string, composed: ComposedMail): Effect {
    let isMarked = false;
    let marking: Promise<void> | undefined;
    let fault: unknown;
    const mark = async (signal: AbortSignal): Promise<void> => {
      try {
        if (!(await this.sends.dispatch(send.applicationId, id, owner, null))) throw inFlight();
        // This attempt was given up while the mark was written: the next one sends the email.
        signal.throwIfAborted();
      } catch (error) {
        fault = error;
        throw error;
      }
      isMarked = true;
      publish('dispatched', owner);
    };
    const call = (signal: AbortSignal): Promise<SentIds> => {
      const open: ComposedMail['open'] = (parts) =>
        endingAfter(composed.open(parts), () => {
          marking ??= mark(signal);
          return marking;
        });
      return mail.send({ ...composed, open }, mailAccount, signal).catch((error: unknown) => {
        throw fault ?? error;
      });
    };
    return {
      draft: null,
      mail: composed,
      isUnsent: (error) => !isMarked || saysUnsent(error),
      call: () => this.#timed(call),
    };
  }

  /**
   * Sends a draft. If the draft is gone, it was sent, and its email is looked for.
   * @param mayBeSent whether an earlier attempt may have sent the draft
   */
  #draftEffect({ send, mail, mailAccount }: SendRequest, draft: string, mayBeSent: boolean): Effect {
    return {
      draft,
      isUnsent: (error) => !mayBeSent && saysUnsent(error),
      call: async (): Promise<SentIds> => {
        const sent = await this.#timed((signal) => mail.sendDraft(draft, mailAccount, signal));
        if (sent !== undefined) return sent;
        mayBeSent = true;
        const found = await this.#timed((signal) =>
          mail.find({ messageId: send.messageId, draft }, mailAccount, signal),
        );
        if (found === undefined) throw new NoTrace();
        return found;
      },
    };
  }

  /** A draft that stays behind is untidy. It must not hide the error that it stays behind for. */
  async #discard({ mail, mailAccount }: SendRequest, draft: string): Promise<void> {
    await this.#timed((signal) => mail.discard(draft, mailAccount, signal)).catch(() => undefined);
  }

  /** Makes the call whose effect a recipient can see, and writes its outcome. */
  async #finish(request: SendRequest, id: string, owner: string, effect: Effect): Promise<SendResult> {
    const { send, mail } = request;
    const { draft } = effect;
    // It is made while the provider answers.
    const copying = effect.mail && this.copies?.of(effect.mail, mail);
    let ids: SentIds;
    try {
      ids = await effect.call();
    } catch (error) {
      if (!effect.isUnsent(error)) await this.sends.leave(send.applicationId, id, owner);
      // First the row: it must not point to a draft that is gone.
      else if ((await this.#writeUnsent(send, id, owner, error)) && draft !== null) await this.#discard(request, draft);
      throw error;
    }
    publish('sent', owner);
    await this.#settle(send, id, ids, await copying);
    publish('settled', owner);
    return { id, providerId: ids.providerId, immutableId: ids.immutableId, wasSentBefore: false };
  }

  /** The email is out: a short failure of the database must not hide it. The retry would find it, too. */
  async #settle(
    { applicationId, accountId, messageId }: NewSend,
    id: string,
    ids: SentIds,
    copy?: Copy | undefined,
  ): Promise<void> {
    const of = { applicationId, accountId, sendId: id, messageId };
    const add = copy?.kind === 'small' ? async (db: Database) => this.copies?.add(of, copy.message, db) : undefined;
    const write = (): Promise<void> => this.sends.sent(applicationId, id, ids, add);
    for (let attempt = 1; ; attempt++) {
      try {
        await write();
        break;
      } catch (error) {
        if (attempt === SETTLE_ATTEMPTS) {
          this.#late.add(write, error);
          throw error;
        }
        await pause(100 * attempt);
      }
    }
    if (copy?.kind === 'large') this.copies?.hold(of, copy.mail);
  }

  /** Notes that this attempt certainly did not send the email. Returns false if another attempt owns the row. */
  async #writeUnsent(
    { applicationId, idempotencyKey }: NewSend,
    id: string,
    owner: string,
    error: unknown,
  ): Promise<boolean> {
    const { status, type, message } = error instanceof ServiceError ? error : INTERNAL;
    // Without a key, no other attempt exists.
    const write = (): Promise<boolean> =>
      isVerdict(error) || idempotencyKey === null
        ? this.sends.failed(applicationId, id, owner, { status, type, detail: message })
        : this.sends.undo(applicationId, id, owner);
    return write().catch((failure: unknown) => {
      this.#late.add(write, failure);
      throw failure;
    });
  }

  /** Another attempt owns the row of this key: returns its outcome, or finishes its work. */
  async #resume(request: SendRequest, attempt: Attempt): Promise<SendResult> {
    const { send, mail, mailAccount } = request;
    const row = await this.#rowOf(send);
    // The row was forgotten in between, or it can be taken now.
    if (row === undefined || row.state === 'prepared') throw inFlight();
    const outcome = outcomeOf(row);
    if (outcome !== undefined) return outcome;
    if (await this.#isWorkedOn(row)) throw inFlight();
    if (!(await this.sends.adopt(send.applicationId, row, attempt))) throw inFlight();
    const { id, draft_ref: draft } = row;
    if (draft !== null) {
      return this.#finish(request, id, attempt.owner, this.#draftEffect(request, draft, true)).catch(async (error) => {
        const isLost = error instanceof NoTrace && this.#isOver(row);
        if (!isLost || !(await this.sends.unknown(send.applicationId, id, null))) throw error;
        throw unknownOutcome(id);
      });
    }
    const found = await this.#timed((signal) =>
      mail.find({ messageId: row.message_id, draft }, mailAccount, signal),
    ).catch(async (error) => {
      await this.sends.leave(send.applicationId, id, attempt.owner);
      throw error;
    });
    if (found === undefined) {
      await this.sends.unknown(send.applicationId, id, attempt.owner);
      throw unknownOutcome(id);
    }
    await this.#settle(send, id, found);
    return { id, providerId: found.providerId, immutableId: found.immutableId, wasSentBefore: true };
  }

  /** @throws ServiceError 409 if the key belongs to another request */
  async #rowOf({
    applicationId,
    idempotencyKey,
    fingerprint,
  }: Pick<NewSend, 'applicationId' | 'idempotencyKey' | 'fingerprint'>): Promise<Send | undefined> {
    if (idempotencyKey === null) return undefined;
    const row = await this.sends.byKey(applicationId, idempotencyKey);
    if (row !== undefined && row.fingerprint !== fingerprint)
      throw new ServiceError(
        409,
        'errors/already_used',
        'The Idempotency-Key belongs to another request. Use a new key for a new email.',
      );
    return row;
  }

  /** Whether the attempt that owns the row may still be working: it is within its time, and its process is alive. */
  async #isWorkedOn(row: Send): Promise<boolean> {
    if (row.owner === null || row.instance_id === null || this.#isOver(row)) return false;
    return this.instances.isAlive(row.instance_id);
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

const publish = (step: SendStep, owner: string): void => {
  if (steps.hasSubscribers) steps.publish({ step, owner });
};
