import { BodyError } from '../body-error.ts';
import { matchParameters, TOKEN } from './parameters.ts';

interface MediaTypeParameter {
  /** In lower case. */
  readonly name: string;
  /** As received, with its quotes. */
  readonly raw: string;
  /** Without quotes and escapes. */
  readonly value: string;
}

/** A parsed `content-type`. */
export interface MediaType {
  /** `type/subtype`, in lower case. */
  readonly essence: string;
  /** In the order of the header. */
  readonly parameters: readonly MediaTypeParameter[];
}

const ESSENCE = /* @__PURE__ */ new RegExp(`^[ \\t]*(${TOKEN}/${TOKEN})[ \\t]*`);
const PARAMETER = /* @__PURE__ */ new RegExp(`;[ \\t]*(?:(${TOKEN})=(${TOKEN}|"(?:[^"\\\\]|\\\\.)*"))?[ \\t]*`, 'y');
/** RFC 2046, section 5.1.1, and the other characters that clients use; no CR, quote or backslash. */
const BOUNDARY = /^[\x20\x21\x23-\x5b\x5d-\x7e]{0,69}[\x21\x23-\x5b\x5d-\x7e]$/;

/** Returns undefined if the header is not written as RFC 9110 says: then it is unknown how a server reads it. */
export function parseMediaType(raw: string): MediaType | undefined {
  const head = ESSENCE.exec(raw);
  const matches = head === null ? undefined : matchParameters(PARAMETER, raw, head[0].length);
  if (head === null || matches === undefined) return undefined;
  const parameters = matches.flatMap(([, name, value]) =>
    name === undefined || value === undefined ? [] : [{ name: name.toLowerCase(), raw: value, value: unquote(value) }],
  );
  return { essence: (head[1] as string).toLowerCase(), parameters };
}

export function isMultipart({ essence }: MediaType): boolean {
  return essence.startsWith('multipart/');
}

export function isJson({ essence }: MediaType): boolean {
  return essence === 'application/json' || essence.endsWith('+json');
}

export function isForm({ essence }: MediaType): boolean {
  return essence === 'application/x-www-form-urlencoded';
}

/** Whether text of this type is UTF-8: the type names no other charset. */
export function isUtf8({ parameters }: MediaType): boolean {
  return parameters.every(({ name, value }) => name !== 'charset' || /^utf-?8$/i.test(value));
}

/**
 * The boundary between the parts of a multipart body.
 * @throws BodyError (422) if there is none, or if two servers might read two different ones
 */
export function boundaryOf({ parameters }: MediaType): string {
  const candidates = parameters.filter(({ name }) => name.startsWith('boundary'));
  const [boundary] = candidates;
  if (
    boundary === undefined ||
    candidates.length > 1 ||
    boundary.name !== 'boundary' ||
    !BOUNDARY.test(boundary.value)
  ) {
    throw new BodyError(422, 'malformed_multipart', 'The content type must have one valid boundary.');
  }
  return boundary.value;
}

/** Whether the body is compressed or otherwise encoded, so that it cannot be read as it is. */
export function isEncoded(contentEncoding: string | undefined): boolean {
  return contentEncoding !== undefined && !/^[ \t]*(?:identity[ \t]*)?$/i.test(contentEncoding);
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
}
