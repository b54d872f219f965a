import { parseDisposition } from '../parse/content-disposition.ts';
import { type MultipartHandler, MultipartParser } from '../parse/multipart.ts';
import type { PartHeader } from '../parse/part-headers.ts';
import { createDigest, digestBytes } from '../platform.ts';
import {
  type BodyEntry,
  type BodyFingerprint,
  type BodyFingerprinter,
  MAX_ENTRIES,
  readableLabel,
} from './body-fingerprint.ts';
import { DigestBuffer } from './digest-buffer.ts';

const ENCODER = /* @__PURE__ */ new TextEncoder();
const UNNAMED = /* @__PURE__ */ Uint8Array.of(0);

/**
 * Compares a multipart body by its parts, each hashed while it arrives. The boundary, the preamble, the epilogue, the
 * order of a part's headers and the order of fields with different names are ignored. If a server may see different
 * parts than this parser, or if names can be read in two ways, only the order of the headers is ignored.
 */
export class MultipartFingerprinter implements BodyFingerprinter, MultipartHandler {
  readonly #parser: MultipartParser;
  readonly #parts: BodyEntry[] = [];
  readonly #outside = new DigestBuffer();
  #content = createDigest();
  #label = '';
  #name: Uint8Array = UNNAMED;
  #orderMatters: boolean;

  /** @param isFormData whether parts are named; the order of different names is then ignored */
  constructor(
    private readonly boundary: string,
    isFormData: boolean,
  ) {
    this.#parser = new MultipartParser(boundary, this);
    this.#orderMatters = !isFormData;
  }

  write(bytes: Uint8Array): void {
    this.#parser.write(bytes);
  }

  end(): BodyFingerprint {
    this.#parser.end();
    // The sort is stable: parts with the same name keep their order.
    const parts = this.#orderMatters
      ? this.#parts
      : this.#parts.toSorted((left, right) => compareBytes(left.name, right.name));
    const total = new DigestBuffer();
    total.byte(this.#parser.ambiguous ? 1 : 0);
    if (this.#parser.ambiguous) {
      total.field(ENCODER.encode(this.boundary));
      total.field(this.#outside.finish());
    }
    for (const { content } of this.#parser.ambiguous ? this.#parts : parts) total.field(content);
    return { kind: 'multipart', total: total.finish(), entries: parts.length > MAX_ENTRIES ? [] : parts };
  }

  part(headers: readonly PartHeader[]): void {
    const { name } = parseDisposition(headers);
    if (name === undefined) this.#orderMatters = true;
    this.#label = name === undefined ? 'part' : readableLabel(name);
    this.#name = name === undefined ? UNNAMED : digestBytes(name);
    this.#content = createDigest();
    this.#content.update(canonical(headers));
  }

  content(bytes: Uint8Array): void {
    this.#content.update(bytes);
  }

  partEnd(): void {
    this.#parts.push({ label: this.#label, name: this.#name, content: this.#content.digest() });
  }

  outside(bytes: Uint8Array): void {
    this.#outside.write(bytes);
  }
}

/** Headers sorted by name, in their own order within a name. Their length is first: content cannot imitate one. */
function canonical(headers: readonly PartHeader[]): Uint8Array {
  const sorted = headers.toSorted((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
  const buffer = new DigestBuffer();
  for (const { name, head, start, end } of sorted) {
    buffer.text(name);
    buffer.field(head, start, end);
  }
  const block = buffer.finish();
  const framed = new Uint8Array(block.length + 2);
  framed.set([block.length >> 8, block.length & 0xff]);
  framed.set(block, 2);
  return framed;
}

/** Compares bytes, because a comparison of text may depend on the locale. */
function compareBytes(left: Uint8Array, right: Uint8Array): number {
  const length = Math.min(left.length, right.length);
  for (let i = 0; i < length; i++) {
    const difference = (left[i] as number) - (right[i] as number);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}
