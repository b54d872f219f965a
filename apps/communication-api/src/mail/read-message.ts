import type { Attachment, simpleParser } from 'mailparser';

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

/** Most characters of embedded pictures. */
const MAX_EMBEDDED = 4_194_304;
/** The address of a picture that is part of the email. */
const PICTURE = /\bcid:([^'"\s>)]{1,256})/g;

type Parsed = Awaited<ReturnType<typeof simpleParser>>;

/**
 * Reads an email. If it is cut off, the part that is there.
 * @param pictures whether `cid:` addresses of inline pictures stay in the HTML, or become `data:` addresses
 */
export async function readMessage(raw: Uint8Array, pictures: 'linked' | 'embedded'): Promise<ReadMessage> {
  const parsed = await parse(raw);
  const html = parsed.html || null;
  return {
    ...headOf(parsed),
    text: parsed.text || null,
    html: html === null || pictures === 'linked' ? html : withPictures(html, parsed.attachments),
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
  return headOf(await parse(end === -1 ? start : start.subarray(0, end + 4)));
}

async function parse(raw: Uint8Array): Promise<Parsed> {
  // Only mailboxes of the mock need the parser, so the service does not load it at its start.
  const { simpleParser } = await import('mailparser');
  // The text is not made from the HTML, nor the HTML from the text.
  return simpleParser(Buffer.from(raw), { keepCidLinks: true, skipHtmlToText: true, skipTextToHtml: true });
}

/** Embeds the pictures, up to {@link MAX_EMBEDDED}: an email may show one large picture thousands of times. */
function withPictures(html: string, attachments: readonly Attachment[]): string {
  const pictures = new Map(
    attachments
      .filter(({ contentType }) => /^image\/[\w.+-]+$/.test(contentType))
      .map(({ cid, contentType, content }) => [cid, `data:${contentType};base64,${content.toString('base64')}`]),
  );
  let left = MAX_EMBEDDED;
  return html.replace(PICTURE, (address, cid: string) => {
    const picture = pictures.get(cid);
    if (picture === undefined || picture.length > left) return address;
    left -= picture.length;
    return picture;
  });
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
