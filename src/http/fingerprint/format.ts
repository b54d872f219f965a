import { base64url, digestText } from '../platform.ts';
import type { BodyEntry, BodyPrint } from './body-print.ts';

/** A fingerprint: what is stored, and what only its requester's answer may use. */
export interface Fingerprint {
  /** Opaque; visible ASCII, at most 2 KiB. Equal for two requests iff they are the same. */
  readonly value: string;
  /** What the requester calls the pieces of the body, in the order of their tags. Not stored. */
  readonly labels: readonly string[];
}

/** Everything that counts, each in the form in which it counts. */
export interface RequestPrint {
  readonly method: string;
  readonly path: string;
  readonly query: string | undefined;
  readonly account: string | undefined;
  readonly type: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly body: BodyPrint;
}

type Field = string | Uint8Array | undefined;
type Secret = string | Uint8Array | undefined;

/** First field of every fingerprint: another version never equals this one. */
export const VERSION = '1';
/** Characters of a tag: 24 bits. A tag only says which piece differs; that something does is said by the total's 256 bits. */
export const TAG_LENGTH = 4;
/** What has a tag, in order; the body's is followed by one letter for how it was understood. */
export const COMPONENTS = ['method', 'path', 'query', 'account', 'content type', 'body'] as const;

/** `1.<total>.<tags of the components><kind of body>.<tags of the body's entries: name and content of each>`. */
export function encodeFingerprint(print: RequestPrint, secret: Secret): Fingerprint {
  const { method, path, query, account, body } = print;
  const type = written(print.type);
  const contentEncoding = written(print.contentEncoding);
  const content = `${written(body.kind)}\n${written(body.total)}`;
  const components = [
    written(method),
    written(path),
    written(query),
    written(account),
    `${type}\n${contentEncoding}`,
    content,
  ];
  let tags = '';
  for (let i = 0; i < components.length; i++) tags += tag(COMPONENTS[i] as string, components[i] as string, secret);
  let entries = '';
  for (const entry of body.entries) {
    const name = written(entry.name);
    entries += tag('entry name', name, secret) + tag('entry', `${name}\n${written(entry.content)}`, secret);
  }
  const total = seal('request', components.join('\n'), secret);
  return {
    value: `${VERSION}.${total}.${tags}${body.kind.charAt(0)}.${entries}`,
    labels: numbered(body.entries),
  };
}

function tag(label: string, fields: string, secret: Secret): string {
  return seal(label, fields, secret).slice(0, TAG_LENGTH);
}

/** Digest of fields, each in a line, none of which can pass for another: each says what it is, and where it ends. */
function seal(label: string, fields: string, secret: Secret): string {
  return digestText(`headgate ${VERSION} ${label}\n${fields}`, secret);
}

/** In one line; different for different fields. */
function written(field: Field): string {
  if (field === undefined) return '-';
  // JSON also of what is no well-formed text, which UTF-8 could only replace.
  return typeof field === 'string' ? JSON.stringify(field) : `=${base64url(field)}`;
}

/** `attachments[1]` where a name comes more than once. */
function numbered(entries: readonly BodyEntry[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { label } of entries) counts.set(label, (counts.get(label) ?? 0) + 1);
  const seen = new Map<string, number>();
  return entries.map(({ label }) => {
    if (counts.get(label) === 1) return label;
    const index = seen.get(label) ?? 0;
    seen.set(label, index + 1);
    return `${label}[${index}]`;
  });
}
