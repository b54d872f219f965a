import type { Readable } from 'node:stream';
import type { SpooledFile } from './spool.ts';

/** The sender or a recipient of an email. */
export interface Mailbox {
  readonly address: string;
  readonly name?: string | undefined;
}

/** A file of an email. */
export interface Attachment {
  readonly filename: string;
  readonly contentType: string;
  /** The HTML body shows the file by this `Content-ID`. Undefined: the file stands beside the body. */
  readonly contentId?: string | undefined;
  readonly file: SpooledFile;
}

/** A whole email, ready to be sent: its envelope, and its message in MIME form. */
export interface ComposedMail {
  readonly messageId: string;
  readonly from: Mailbox;
  /** Addresses of all recipients: to, cc and bcc. */
  readonly recipients: readonly string[];
  /** The provider's name for the conversation of the email that this email answers. */
  readonly thread?: string | undefined;
  /** The files of the message, for a provider that takes them one by one. */
  readonly attachments: readonly Attachment[];
  /**
   * The message as bytes. Each call reads it from its start.
   * @param options their defaults are false
   */
  open(options?: {
    /** With the field `Bcc`, for a provider that takes the recipients from the message and removes the field itself. */
    readonly keepBcc?: boolean;
    /** Without tracked links and pixel. */
    readonly untracked?: boolean;
    readonly withoutAttachments?: boolean;
  }): Readable;
  /**
   * Keeps the files that the message is read from beyond the request.
   * @returns frees them
   */
  hold(): () => Promise<void>;
}
