import { parseDisposition } from '../parse/content-disposition.ts';
import { isUtf8, parseMediaType } from '../parse/media-type.ts';
import { type MultipartHandler, MultipartParser } from '../parse/multipart.ts';
import type { PartHeader } from '../parse/part-headers.ts';
import { decodeUtf8 } from '../parse/utf8.ts';
import { latin1 } from '../platform.ts';
import { Bytes } from './bytes.ts';
import type { FieldReader, Found } from './field-value.ts';

/** Codings that change nothing. */
const IDENTITY = /^[ \t]*(?:7bit|8bit|binary)[ \t]*$/i;

/** A field of `multipart/form-data`, in any position. */
export class MultipartField implements FieldReader, MultipartHandler {
  readonly #parser: MultipartParser;
  readonly #value: Bytes;
  /** Whether the part under way is the field. */
  #isFound = false;

  constructor(
    boundary: string,
    private readonly found: Found,
  ) {
    this.#parser = new MultipartParser(boundary, this);
    this.#value = new Bytes(found.maxBytes);
  }

  write(bytes: Uint8Array): void {
    this.#parser.write(bytes);
    this.#check();
  }

  end(): string {
    this.#parser.end();
    this.#check();
    return this.found.get();
  }

  part(headers: readonly PartHeader[]): void {
    const { name: raw, hasFilename } = parseDisposition(valuesOf(headers, 'content-disposition'));
    if (raw === undefined) throw this.found.ambiguous('a part of the form has no plain name');
    const name = decodeUtf8(Uint8Array.from(raw, (character) => character.charCodeAt(0)));
    if (name === undefined) throw this.found.ambiguous('there is a name that is not UTF-8');
    this.#isFound = this.found.matches(name);
    if (!this.#isFound) return;
    if (hasFilename) throw this.found.error('field_not_text', 'must be text, not a file');
    if (!isText(headers)) throw this.found.error('field_not_text', 'must be plain text in UTF-8, not encoded');
  }

  content(bytes: Uint8Array): void {
    if (this.#isFound && !this.#value.add(bytes)) throw this.found.tooLong();
  }

  partEnd(): void {
    if (this.#isFound) this.found.set(this.#value.text());
    this.#isFound = false;
  }

  outside(): void {}

  #check(): void {
    if (this.#parser.ambiguous) throw this.found.ambiguous('the boundary stands in other places than between parts');
  }
}

/** Whether nobody would decode the part as something else, or take it for a file. */
function isText(headers: readonly PartHeader[]): boolean {
  const types = valuesOf(headers, 'content-type').map((value) => parseMediaType(latin1(value)));
  const encodings = valuesOf(headers, 'content-transfer-encoding').map(latin1);
  return (
    types.length <= 1 &&
    types.every((type) => type?.essence === 'text/plain' && isUtf8OrAscii(type)) &&
    encodings.every((encoding) => IDENTITY.test(encoding))
  );
}

function isUtf8OrAscii(type: NonNullable<ReturnType<typeof parseMediaType>>): boolean {
  return isUtf8(type) || type.parameters.every(({ name, value }) => name !== 'charset' || /^us-ascii$/i.test(value));
}

function valuesOf(headers: readonly PartHeader[], wanted: string): readonly Uint8Array[] {
  return headers.filter(({ name }) => name === wanted).map(({ value }) => value);
}
