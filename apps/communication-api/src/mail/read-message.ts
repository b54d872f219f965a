import type { simpleParser } from 'mailparser';

/** A header field, unfolded. Its encoded words are not decoded. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

/** An attached file, without its bytes. */
export interface AttachedFile {
  readonly filename: string | null;
  readonly contentType: string;
  readonly size: number;
}

/** The head of an email. */
export interface ReadHead {
  readonly headers: readonly HeaderField[];
  readonly from: string | null;
  readonly subject: string | null;
}

/** An email, decoded. */
export interface ReadMessage extends ReadHead {
  readonly text: string | null;
  readonly html: string | null;
  readonly attachments: readonly AttachedFile[];
}

type Parsed = Awaited<ReturnType<typeof simpleParser>>;

/**
 * Reads an email. If it is cut off, the part that is there.
 * @param pictures whether `cid:` addresses of inline pictures stay in the HTML, or become `data:` addresses
 */
export async function readMessage(raw: Uint8Array, pictures: 'linked' | 'embedded'): Promise<ReadMessage> {
  const parsed = await parse(raw, pictures === 'linked');
  return {
    ...headOf(parsed),
    text: parsed.text || null,
    html: parsed.html || null,
    attachments: parsed.attachments.map(({ filename, contentType, size }) => ({
      filename: filename ?? null,
      contentType,
      size,
    })),
  };
}

/** Reads the head of an email from its first bytes. */
export async function readHead(start: Uint8Array): Promise<ReadHead> {
  const end = Buffer.from(start).indexOf('\r\n\r\n');
  return headOf(await parse(end === -1 ? start : start.subarray(0, end + 4), true));
}

async function parse(raw: Uint8Array, keepCidLinks: boolean): Promise<Parsed> {
  // Only mailboxes of the mock need the parser, so the service does not load it at its start.
  const { simpleParser } = await import('mailparser');
  // The text is not made from the HTML, nor the HTML from the text.
  return simpleParser(Buffer.from(raw), { keepCidLinks, skipHtmlToText: true, skipTextToHtml: true });
}

const headOf = ({ headerLines, from, subject }: Parsed): ReadHead => ({
  headers: headerLines.map(({ line }) => {
    const colon = line.indexOf(':');
    return {
      name: line.slice(0, colon),
      value: line
        .slice(colon + 1)
        .replace(/\r?\n\s+/g, ' ')
        .trim(),
    };
  }),
  from: from?.text ?? null,
  subject: subject ?? null,
});
