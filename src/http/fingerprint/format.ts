import { base64url, digestText } from '../platform.ts';
import type { BodyEntry, BodyFingerprint } from './body-fingerprint.ts';

/** A fingerprint: its value is stored, its labels may be used only in the response to the same request. */
export interface Fingerprint {
  /** Opaque; visible ASCII, at most 2 KiB. Equal for two requests if and only if they are the same. */
  readonly value: string;
  /** The client's names of the pieces of the body, in the order of their tags. Not stored. */
  readonly labels: readonly string[];
  /** Names of the header fields that are part of the comparison. Not stored. */
  readonly compares?: readonly string[] | undefined;
}

/** Everything of a request that the fingerprint depends on, in the form in which it is compared. */
export interface CanonicalRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string | undefined;
  readonly account: string | undefined;
  /** Header fields that say for whom the request is, in the order of their names. */
  readonly compares: readonly (readonly [name: string, value: string | undefined])[];
  readonly type: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly body: BodyFingerprint;
}

type Field = string | Uint8Array | undefined;
type Secret = string | Uint8Array | undefined;

/** First field of every fingerprint: fingerprints of two versions are never equal. */
export const VERSION = '1';
/** Characters of a tag: 24 bits. Whether requests differ is decided by the 256 bits of the total; a tag says where. */
export const TAG_LENGTH = 4;
/** The tagged components, in order. The body's tag is followed by one letter for its kind. */
export const COMPONENTS = ['method', 'path', 'query', 'account', 'content type', 'body'] as const;

/** Writes `1.<total>.<tags of the components><kind of body>.<tags of the body's entries: name and content of each>`. */
export function encodeFingerprint(request: CanonicalRequest, secret: Secret): Fingerprint {
  const { method, path, query, account, compares, type, contentEncoding, body } = request;
  // A line more than without compared fields, so that the two never give the same text.
  const caller = [fieldLine(account), ...(compares.length > 0 ? [JSON.stringify(compares)] : [])].join('\n');
  const components = [
    ...[method, path, query].map(fieldLine),
    caller,
    `${fieldLine(type)}\n${fieldLine(contentEncoding)}`,
    `${fieldLine(body.kind)}\n${fieldLine(body.total)}`,
  ];
  let tags = '';
  for (let i = 0; i < components.length; i++) tags += tag(COMPONENTS[i] as string, components[i] as string, secret);
  let entries = '';
  for (const entry of body.entries) {
    const name = fieldLine(entry.name);
    entries += tag('entry name', name, secret) + tag('entry', `${name}\n${fieldLine(entry.content)}`, secret);
  }
  const total = labelledDigest('request', components.join('\n'), secret);
  return {
    value: `${VERSION}.${total}.${tags}${body.kind.charAt(0)}.${entries}`,
    labels: withIndexes(body.entries),
    ...(compares.length > 0 && { compares: compares.map(([name]) => name) }),
  };
}

function tag(label: string, fields: string, secret: Secret): string {
  return labelledDigest(label, fields, secret).slice(0, TAG_LENGTH);
}

/**
 * Digest of a label and of fields, one per line. Different labels or fields never give the same text, so no digest can
 * pass for one of another kind.
 */
function labelledDigest(label: string, fields: string, secret: Secret): string {
  return digestText(`headgate ${VERSION} ${label}\n${fields}`, secret);
}

/** Writes a field as one line. Different fields give different lines. */
function fieldLine(field: Field): string {
  if (field === undefined) return '-';
  // JSON escapes lone surrogates, which UTF-8 would replace: two different strings would become the same.
  return typeof field === 'string' ? JSON.stringify(field) : `=${base64url(field)}`;
}

/** Labels of the entries; `attachments[1]` if a name is used more than once. */
function withIndexes(entries: readonly BodyEntry[]): readonly string[] {
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
