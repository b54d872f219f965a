import { parseDisposition } from '../parse/content-disposition.ts';
import { type MultipartHandler, MultipartParser } from '../parse/multipart.ts';
import type { PartHeader } from '../parse/part-headers.ts';
import { createDigest, type Digest } from '../platform.ts';
import { type BodyPrint, type BodyPrinter, compareBytes, labelOf, MAX_ENTRIES } from './body-print.ts';
import { Sink } from './sink.ts';

const ENCODER = /* @__PURE__ */ new TextEncoder();
const UNNAMED = /* @__PURE__ */ Uint8Array.of(0);

interface Part {
  readonly label: string;
  readonly name: Uint8Array;
  readonly content: Uint8Array;
}

/**
 * A multipart body by its parts, each hashed while it comes in. Boundary, preamble, epilogue, the order of a part's headers and the order
 * of fields with different names do not count. Where a server may see other parts than we do, or names can be read in two ways,
 * everything but the headers' order counts.
 */
export class MultipartPrinter implements BodyPrinter, MultipartHandler {
  readonly #parser: MultipartParser;
  readonly #parts: Part[] = [];
  readonly #outside = new Sink();
  #digest: Digest = createDigest();
  #label = '';
  #name: Uint8Array = UNNAMED;
  #isOrdered: boolean;

  /** @param isFormData whether parts have names, so that their order does not count */
  constructor(
    private readonly boundary: string,
    isFormData: boolean,
  ) {
    this.#parser = new MultipartParser(boundary, this);
    this.#isOrdered = !isFormData;
  }

  write(bytes: Uint8Array): void {
    this.#parser.write(bytes);
  }

  end(): BodyPrint {
    this.#parser.end();
    // The sort is stable: parts of one name stay in their order.
    const parts = this.#isOrdered
      ? this.#parts
      : this.#parts.toSorted((left, right) => compareBytes(left.name, right.name));
    const total = new Sink();
    total.byte(this.#parser.ambiguous ? 1 : 0);
    if (this.#parser.ambiguous) {
      total.field(ENCODER.encode(this.boundary));
      total.field(this.#outside.finish());
    }
    for (const { content } of this.#parser.ambiguous ? this.#parts : parts) total.field(content);
    return { kind: 'multipart', total: total.finish(), entries: parts.length > MAX_ENTRIES ? [] : parts };
  }

  part(headers: readonly PartHeader[]): void {
    const dispositions = headers.filter(({ name }) => name === 'content-disposition').map(({ value }) => value);
    const { name } = parseDisposition(dispositions);
    if (name === undefined) this.#isOrdered = true;
    const bytes = Uint8Array.from(name ?? '', (character) => character.charCodeAt(0));
    this.#label = name === undefined ? 'part' : labelOf(bytes);
    this.#name = name === undefined ? UNNAMED : digestOf(bytes);
    this.#digest = createDigest();
    this.#digest.update(canonical(headers));
  }

  content(bytes: Uint8Array): void {
    this.#digest.update(bytes);
  }

  partEnd(): void {
    this.#parts.push({ label: this.#label, name: this.#name, content: this.#digest.digest() });
  }

  outside(bytes: Uint8Array): void {
    this.#outside.write(bytes);
  }
}

/** Headers in one order, those of one name in theirs; their length first, so that content cannot pass for one. */
function canonical(headers: readonly PartHeader[]): Uint8Array {
  const sorted = headers.toSorted((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0));
  const sink = new Sink();
  for (const { name, value } of sorted) {
    sink.field(ENCODER.encode(name));
    sink.field(value);
  }
  const block = sink.finish();
  const framed = new Uint8Array(block.length + 2);
  framed.set([block.length >> 8, block.length & 0xff]);
  framed.set(block, 2);
  return framed;
}

function digestOf(bytes: Uint8Array): Uint8Array {
  const digest = createDigest();
  digest.update(bytes);
  return digest.digest();
}
