import type { Readable } from 'node:stream';
import type { Attachment } from './compose.ts';

/** Who sends or receives an email. */
export interface Mailbox {
  readonly address: string;
  readonly name?: string | undefined;
}

/** A whole email, ready to be sent: its envelope, and its message in MIME form. */
export interface ComposedMail {
  readonly messageId: string;
  readonly from: Mailbox;
  /** Addresses of all recipients: to, cc and bcc. */
  readonly recipients: readonly string[];
  /** What the provider calls the conversation of the email that this one answers. */
  readonly thread?: string | undefined;
  /** The files of the message, for a provider that takes them one by one. */
  readonly attachments: readonly Attachment[];
  /**
   * The message as bytes. Each call reads it from its start.
   * @param options `keepBcc`: with the field `Bcc`, for a provider that takes the recipients from the message and
   * removes the field itself: no recipient may see it. `untracked`: without tracked links and
   * pixel. `withoutAttachments`: without its files. Default of all: false
   */
  open(options?: {
    readonly keepBcc?: boolean;
    readonly untracked?: boolean;
    readonly withoutAttachments?: boolean;
  }): Readable;
  /**
   * Keeps the files that the message is read from beyond the request.
   * @returns frees them
   */
  hold(): () => Promise<void>;
}
