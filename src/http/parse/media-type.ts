import { BodyError } from '../body-error.ts';

export interface MediaTypeParameter {
  /** In lower case. */
  readonly name: string;
  /** As it came, with its quotes. */
  readonly raw: string;
  /** Without quotes and escapes. */
  readonly value: string;
}

/** A `content-type` that was taken apart. */
export interface MediaType {
  /** `type/subtype`, in lower case. */
  readonly essence: string;
  /** In their order. */
  readonly parameters: readonly MediaTypeParameter[];
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const ESSENCE = /* @__PURE__ */ new RegExp(`^[ \\t]*(${TOKEN}/${TOKEN})[ \\t]*`);
const PARAMETER = /* @__PURE__ */ new RegExp(`;[ \\t]*(?:(${TOKEN})=(${TOKEN}|"(?:[^"\\\\]|\\\\.)*"))?[ \\t]*`, 'y');
/** RFC 2046, section 5.1.1, with what clients use beside it; no CR, no quote, no backslash. */
const BOUNDARY = /^[\x20\x21\x23-\x5b\x5d-\x7e]{0,69}[\x21\x23-\x5b\x5d-\x7e]$/;

/** Undefined where it is not written as RFC 9110 says: then nobody knows what a server takes it for. */
export function parseMediaType(raw: string): MediaType | undefined {
  const head = ESSENCE.exec(raw);
  if (head === null) return undefined;
  const parameters: MediaTypeParameter[] = [];
  let at = head[0].length;
  while (at < raw.length) {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(raw);
    if (match === null) return undefined;
    at = PARAMETER.lastIndex;
    const [, name, value] = match;
    if (name === undefined || value === undefined) continue;
    parameters.push({ name: name.toLowerCase(), raw: value, value: unquote(value) });
  }
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

/** Whether text of this type is UTF-8, as far as the type says so. */
export function isUtf8({ parameters }: MediaType): boolean {
  return parameters.every(({ name, value }) => name !== 'charset' || /^utf-?8$/i.test(value));
}

/** What separates the parts of a multipart body. Throws where two servers might see two boundaries. */
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

/** Whether the body went through a coding that would have to be undone before it can be read. */
export function isEncoded(contentEncoding: string | undefined): boolean {
  return contentEncoding !== undefined && !/^[ \t]*(?:identity[ \t]*)?$/i.test(contentEncoding);
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
}
