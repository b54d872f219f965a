import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { compile } from 'html-to-text';
import MailComposer from 'nodemailer/lib/mail-composer';
import { readAddressList } from '../domain/addresses.ts';
import { bodyTypeOf, type CustomHeader, headerOf } from '../domain/custom-headers.ts';
import { isMessageId } from '../domain/message-id.ts';
import { withLineBreaks } from './line-breaks.ts';
import type { Attachment, ComposedMail, Mailbox } from './mail.ts';
import { textMessage } from './text-message.ts';

/** The parts that an email is made from. */
export interface Draft {
  readonly messageId: string;
  readonly date: Date;
  readonly from: Mailbox;
  readonly to: readonly Mailbox[];
  readonly cc: readonly Mailbox[];
  readonly bcc: readonly Mailbox[];
  readonly subject: string | undefined;
  readonly body: string;
  /** The HTML body with tracked links and the pixel. The text alternative is always made from `body`. */
  readonly trackedBody?: string | undefined;
  readonly customHeaders: readonly CustomHeader[];
  readonly attachments: readonly Attachment[];
  /** The email that this one answers. */
  readonly parent?:
    | {
        readonly messageId: string;
        readonly references: readonly string[];
        readonly subject: string | undefined;
        readonly thread: string | undefined;
      }
    | undefined;
}

/** References beyond the last ones only make the header long. */
const MAX_REFERENCES = 20;
/** Longest subject of a parent that an answer repeats, in characters. */
const MAX_SUBJECT = 1_000;
/**
 * Most of an HTML body that becomes its text alternative, in characters. The conversion blocks the process, and its
 * time grows with the square of the depth of the elements.
 */
const MAX_TEXT_SOURCE = 65_536;
/** A longer body is encoded in slices of this many characters. Other requests are served between them. */
const MAX_AT_ONCE = 65_536;
/** Without a bound, elements that are nested very deeply would overflow the stack. */
const MAX_DEPTH = 100;
const htmlToText = compile({ wordwrap: 78, limits: { maxDepth: MAX_DEPTH } });
const toText = (html: string): string => htmlToText(html.slice(0, MAX_TEXT_SOURCE));

/**
 * Types that a MIME message is built of. A file of such a type is sent as a plain file, since it would otherwise become
 * part of the message's own structure, or go out without an encoding.
 */
const STRUCTURAL = /^(?:multipart|message)\//i;

/** The subject of an answer: the subject of its parent, with one `Re:`. The parent may come from anyone. */
export function answerSubject(subject: string | undefined): string | undefined {
  const line = subject
    ?.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .slice(0, MAX_SUBJECT)
    .replace(/\p{Surrogate}/gu, '\ufffd');
  return line === undefined || /^re:/i.test(line) ? line : `Re: ${line}`;
}

/** `References` of an answer: the references of its parent, then the parent. */
export const referencesOf = (parent: NonNullable<Draft['parent']>): string[] =>
  [...parent.references.slice(-MAX_REFERENCES), parent.messageId].filter(isMessageId);

/** Without a text, the composer would make an attachment the whole message. */
const EMPTY = '\r\n';

/** Makes the MIME message. Nothing is read yet: the attachments are read while the message is. */
export function compose(draft: Draft): ComposedMail {
  const { messageId, from, to, cc, bcc, parent } = draft;
  let text: string | undefined;
  const textOf = (body: string): string => {
    text ??= toText(body);
    return text;
  };
  /** Messages without files, by the parts that differ. The copy of an email is usually the email itself. */
  const finished = new Map<string, Buffer>();
  return {
    messageId,
    from,
    recipients: [...new Set([...to, ...cc, ...bcc].map(({ address }) => address))],
    thread: parent?.thread,
    attachments: draft.attachments,
    open: ({ keepBcc = false, untracked = false, withoutAttachments = false } = {}) => {
      const shown: Draft = {
        ...draft,
        bcc: keepBcc ? bcc : [],
        trackedBody: untracked ? undefined : draft.trackedBody,
        attachments: withoutAttachments ? [] : draft.attachments,
      };
      return Readable.from(withLineBreaks(bytesOf(shown, textOf, finished)), { objectMode: false });
    },
    hold: () => {
      const held = draft.attachments.map(({ file }) => file.hold());
      return async () => {
        for (const free of held) await free();
      };
    },
  };
}

/**
 * The message as the composer writes it, with line feeds alone where the body has them.
 * @param finished gets the message if it has no files
 */
async function* bytesOf(
  draft: Draft,
  textOf: (body: string) => string,
  finished: Map<string, Buffer>,
): AsyncGenerator<Uint8Array> {
  const { bcc, trackedBody, attachments } = draft;
  const variant = JSON.stringify([bcc.length, attachments.length, trackedBody === undefined]);
  const known = finished.get(variant);
  if (known !== undefined) return yield known;
  const contents: Readable[] = [];
  const opened = (content: Readable): Readable => {
    contents.push(content);
    return content;
  };
  const message = new MailComposer(messageOf(draft, opened, textOf)).compile();
  message.keepBcc = true;
  if (contents.length === 0) {
    const whole = textMessage(message);
    finished.set(variant, whole);
    return yield whole;
  }
  try {
    yield* message.createReadStream();
  } finally {
    // The composer would read the files to their end, even if its reader left and the files are closed.
    for (const content of contents) content.destroy();
  }
}

/** Whether the body is sent as HTML. */
export function isHtml({ body, customHeaders }: Pick<Draft, 'body' | 'customHeaders'>): boolean {
  const contentType = headerOf(customHeaders, 'content-type');
  const type = contentType === undefined ? undefined : bodyTypeOf(contentType);
  return type === undefined ? hasTag(body) : type === 'text/html';
}

function messageOf(
  { body, customHeaders, parent, ...draft }: Draft,
  opened: (content: Readable) => Readable,
  textOf: (body: string) => string,
): ConstructorParameters<typeof MailComposer>[0] {
  const replyTo = headerOf(customHeaders, 'reply-to');
  const subject = draft.subject ?? answerSubject(parent?.subject);
  const textPart = (text: string) =>
    text.length <= MAX_AT_ONCE
      ? text
      : {
          content: opened(Readable.from(slicesOf(text), { objectMode: false })),
          contentTransferEncoding: encodingOf(text),
        };
  return {
    messageId: draft.messageId,
    date: draft.date,
    from: boxOf(draft.from),
    to: draft.to.map(boxOf),
    cc: draft.cc.map(boxOf),
    bcc: draft.bcc.map(boxOf),
    ...(subject === undefined ? {} : { subject }),
    ...(replyTo === undefined ? {} : { replyTo: (readAddressList(replyTo) ?? []).map(boxOf) }),
    ...(parent === undefined
      ? {}
      : {
          references: referencesOf(parent),
          ...(isMessageId(parent.messageId) ? { inReplyTo: parent.messageId } : {}),
        }),
    ...(isHtml({ body, customHeaders })
      ? { html: textPart(draft.trackedBody ?? (body || EMPTY)), text: textPart(textOf(body)) }
      : { text: textPart(body || EMPTY) }),
    headers: customHeaders
      .filter(({ name }) => !['content-type', 'reply-to'].includes(name.toLowerCase()))
      .map(({ name, value }) => ({ key: name, value })),
    attachments: draft.attachments.map((attachment) => ({
      filename: attachment.filename,
      contentType: STRUCTURAL.test(attachment.contentType) ? 'application/octet-stream' : attachment.contentType,
      content: opened(attachment.file.open()),
      ...(attachment.contentId === undefined ? {} : { cid: attachment.contentId }),
    })),
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

/** The bytes of a text. A slice never ends between the halves of a surrogate pair. */
async function* slicesOf(text: string): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; ) {
    const isWhole = text.codePointAt(at + MAX_AT_ONCE - 1) === text.charCodeAt(at + MAX_AT_ONCE - 1);
    const end = at + (isWhole ? MAX_AT_ONCE : MAX_AT_ONCE + 1);
    yield Buffer.from(text.slice(at, end));
    at = end;
    await turn();
  }
}

/** As the composer chooses for a text that it sees at once: by whether most of it are Latin letters. */
function encodingOf(text: string): 'quoted-printable' | 'base64' {
  const beginning = text.slice(0, MAX_AT_ONCE);
  const count = (pattern: RegExp): number => beginning.match(pattern)?.length ?? 0;
  return count(/[^\t\n\r -~]/g) < count(/[a-z]/gi) ? 'quoted-printable' : 'base64';
}

const boxOf = ({ name, address }: Mailbox): { name: string; address: string } => ({ name: name ?? '', address });

/** Whether a body is HTML: it contains a tag. */
const hasTag = (body: string): boolean => /<\/?[a-z][a-z0-9]*(?:\s[^<>]*)?\/?>/i.test(body);
