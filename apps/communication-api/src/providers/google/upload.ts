import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ComposedMail } from '../../mail/mail.ts';

/** An email as the body of an upload, and how much of it was read. */
export interface MailUpload {
  readonly contentType: string;
  readonly body: ReadableStream;
  /** Whether the email was read to its end. Until then, the provider cannot know all of it. */
  readonly isRead: () => boolean;
}

/**
 * An email with its description, as `multipart/related`. The email is read while it is sent.
 * @param description JSON that the API expects beside the email
 */
export function mailUpload(mail: ComposedMail, description: unknown, signal: AbortSignal): MailUpload {
  const boundary = `mail-${randomUUID()}`;
  let isRead = false;
  async function* parts(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(
      `--${boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n${JSON.stringify(description)}\r\n` +
        `--${boundary}\r\nContent-Type: message/rfc822\r\n\r\n`,
    );
    for await (const chunk of mail.open({ keepBcc: true }) as AsyncIterable<Uint8Array>) {
      // Fetch reads a body on to its end after it was aborted.
      signal.throwIfAborted();
      yield chunk;
    }
    isRead = true;
    yield Buffer.from(`\r\n--${boundary}--\r\n`);
  }
  return {
    contentType: `multipart/related; boundary=${boundary}`,
    body: Readable.toWeb(Readable.from(parts(), { objectMode: false })) as ReadableStream,
    isRead: () => isRead,
  };
}
