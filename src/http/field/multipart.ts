import { parseDisposition } from '../parse/content-disposition.ts';
import { isUtf8, type MediaType, parseMediaType } from '../parse/media-type.ts';
import { type MultipartHandler, MultipartParser } from '../parse/multipart.ts';
import { type PartHeader, partHeaderValues } from '../parse/part-headers.ts';
import { decodeUtf8 } from '../parse/utf8.ts';
import { latin1 } from '../platform.ts';
import { BoundedBuffer } from './bounded-buffer.ts';
import type { FieldReader, FieldValue } from './field-value.ts';

/** Transfer encodings that leave the content unchanged. */
const IDENTITY = /^[ \t]*(?:7bit|8bit|binary)[ \t]*$/i;

/** Reads a field of `multipart/form-data`, in any position. */
export class MultipartField implements FieldReader, MultipartHandler {
  readonly #parser: MultipartParser;
  readonly #value: BoundedBuffer;
  /** Whether the current part is the field. */
  #isMatch = false;

  constructor(
    boundary: string,
    private readonly field: FieldValue,
  ) {
    this.#parser = new MultipartParser(boundary, this);
    this.#value = new BoundedBuffer(field.maxBytes);
  }

  write(bytes: Uint8Array): void {
    this.#parser.write(bytes);
    this.#check();
  }

  end(): string {
    this.#parser.end();
    this.#check();
    return this.field.get();
  }

  part(headers: readonly PartHeader[]): void {
    const { name: bytes, hasFilename } = parseDisposition(headers);
    if (bytes === undefined) throw this.field.ambiguous('a part of the form has no plain name');
    const name = decodeUtf8(bytes);
    if (name === undefined) throw this.field.ambiguous('the name of another field is not UTF-8');
    this.#isMatch = this.field.matches(name);
    if (!this.#isMatch) return;
    if (hasFilename) throw this.field.error('field_not_text', 'must be text, not a file');
    if (!isText(headers)) throw this.field.error('field_not_text', 'must be plain text in UTF-8, not encoded');
  }

  content(bytes: Uint8Array): void {
    if (this.#isMatch && !this.#value.add(bytes)) throw this.field.tooLong();
  }

  partEnd(): void {
    if (this.#isMatch) this.field.set(this.#value.takeText());
    this.#isMatch = false;
  }

  outside(): void {}

  #check(): void {
    if (this.#parser.ambiguous) throw this.field.ambiguous('the boundary also appears where it separates no parts');
  }
}

/** Whether every server decodes the part as this text, and none treats it as a file. */
function isText(headers: readonly PartHeader[]): boolean {
  const types = partHeaderValues(headers, 'content-type').map((value) => parseMediaType(latin1(value)));
  const encodings = partHeaderValues(headers, 'content-transfer-encoding').map(latin1);
  return (
    types.length <= 1 &&
    types.every((type) => type?.essence === 'text/plain' && isUtf8OrAscii(type)) &&
    encodings.every((encoding) => IDENTITY.test(encoding))
  );
}

function isUtf8OrAscii(type: MediaType): boolean {
  return isUtf8(type) || type.parameters.every(({ name, value }) => name !== 'charset' || /^us-ascii$/i.test(value));
}
