import type { Clock } from '../domain/clock.ts';
import { type EventType, triggersOf } from '../domain/event-types.ts';
import { newId } from '../domain/ids.ts';
import type { SentIds } from '../providers/provider.ts';
import type { SendContent, SendRecords } from './send-records.ts';

/** A requested send. */
export interface NewSend {
  readonly applicationId: string;
  readonly accountId: string;
  /** Its name: see `keyName`. Null: the request carries no idempotency key. */
  readonly idempotencyKey: string | null;
  readonly fingerprint: string;
  readonly messageId: string;
  readonly label: string | null;
  /** What `tracking_options` asked for. Default: neither. */
  readonly tracks?: { readonly opens: boolean; readonly links: boolean };
  readonly content: SendContent;
}

/** Why an email was not sent, as it is stored. */
export interface SendError {
  readonly status: number;
  readonly type: string;
  readonly detail: string;
}

/** The facts of a send that its events name. */
interface ToldSend {
  readonly id: string;
  readonly label: string | null;
}

/** Additions to the outcome of a send. */
interface OutcomeExtras {
  /** Inserts the row first: the send was not dispatched. */
  readonly send?: SendNote;
  /** The sealed copy for the folder for sent emails. */
  readonly copy?: Uint8Array | undefined;
  /** The entry of the audit log, if a person found the outcome out. */
  readonly audit?: object | undefined;
}

/** The note of a dispatch: the row of a send. `send_begun_1` in the database reads it. */
export type SendNote = ReturnType<SendNotes['begun']>;
/** The note of an outcome. `send_ended_1` in the database reads it. */
export type OutcomeNote = ReturnType<SendNotes['sent'] | SendNotes['failed']>;

/** Makes the notes from which the steps of a claim write the row of a send and its events. */
export class SendNotes {
  constructor(
    private readonly records: Pick<SendRecords, 'sealed'>,
    private readonly clock: Clock,
  ) {}

  /** From now on the email may be sent. */
  begun(send: NewSend, id: string, draft: string | null) {
    return {
      id,
      account_id: send.accountId,
      idempotency_key: send.idempotencyKey,
      fingerprint: send.fingerprint,
      message_id: send.messageId,
      draft_ref: draft,
      envelope: base64(this.records.sealed(id, send.content)),
      label: send.label,
      tracks_opens: send.tracks?.opens ?? false,
      tracks_links: send.tracks?.links ?? false,
      created_at: this.#now(),
    };
  }

  /** @param ids undefined: a person says so */
  sent({ id, label }: ToldSend, ids: SentIds | undefined, { copy, ...extras }: Omit<OutcomeExtras, 'send'> = {}) {
    const told = { tracking_id: id, provider_id: ids?.providerId ?? null, label };
    const rejected = ids?.rejected ?? [];
    return {
      ...{ id, state: 'sent', at: this.#now(), ...extras },
      provider_id: ids?.providerId,
      provider_immutable_id: ids?.immutableId,
      thread_ref: ids?.thread,
      message_id: ids?.messageId,
      rejected,
      copy: copy && base64(copy),
      events: [
        this.#event('email.sent', told),
        this.#event('email.outcome_resolved', { ...told, state: 'sent' }),
        // The email names them: GET /v2/emails/{tracking_id}.
        ...(rejected.length > 0
          ? [this.#event('email.recipient_rejected', { ...told, recipients: rejected.length })]
          : []),
      ],
    };
  }

  failed({ id, label }: ToldSend, error: SendError, extras: Omit<OutcomeExtras, 'copy'> = {}) {
    const { status, type } = error;
    const told = { tracking_id: id, provider_id: null, label };
    return {
      ...{ id, state: 'failed', at: this.#now(), error, ...extras },
      events: [
        this.#event('email.failed', { ...told, error: { status, type } }),
        this.#event('email.outcome_resolved', { ...told, state: 'failed' }),
      ],
    };
  }

  /** Events never contain an address, a subject or a text of the provider. */
  #event(type: EventType, data: Readonly<Record<string, unknown>>) {
    return { id: newId('evt', this.clock()), type, triggers: triggersOf(type), data };
  }

  #now(): string {
    return new Date(this.clock()).toISOString();
  }
}

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
