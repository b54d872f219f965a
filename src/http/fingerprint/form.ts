import { type FormHandler, FormParser } from '../parse/form.ts';
import {
  type BodyEntry,
  type BodyFingerprint,
  type BodyFingerprinter,
  BytesFingerprinter,
  MAX_ENTRIES,
  readableLabel,
} from './body-fingerprint.ts';
import { DigestBuffer, LENGTH_BYTES } from './digest-buffer.ts';

const MAX_LABEL_BYTES = 64;
const [EMPTY, WITHOUT_VALUE, WITH_VALUE] = [0, 1, 2];

/**
 * Compares a form by its percent-decoded pairs, in their order. `a` and `a=` are different, and so are `a=1` and
 * `a=1&`. If a percent sign does not begin an escape, the whole body is compared by its bytes, because servers disagree
 * about such a percent sign.
 */
export class FormFingerprinter implements BodyFingerprinter, FormHandler {
  readonly #parser = new FormParser(this);
  readonly #bytes = new BytesFingerprinter();
  readonly #total = new DigestBuffer();
  /** Where the current pair begins in `#total`: at its marker, which is known only at its end. */
  #pairStart = 0;
  /** Where the representation of its name ends. */
  #nameEnd = 0;
  #state: 'empty' | 'name' | 'value' = 'empty';
  #label: number[] = [];
  #entries: BodyEntry[] = [];
  #pairs = 0;
  #hasBadEscape = false;

  write(bytes: Uint8Array): void {
    this.#bytes.write(bytes);
    if (!this.#hasBadEscape) this.#parser.write(bytes);
  }

  end(): BodyFingerprint {
    if (!this.#hasBadEscape) this.#parser.end();
    if (this.#hasBadEscape) return this.#bytes.end();
    const entries = this.#pairs > MAX_ENTRIES ? [] : this.#entries;
    return { kind: 'form', total: this.#total.finish(), entries };
  }

  nameByte(byte: number): void {
    if (this.#state === 'empty') this.#beginName();
    this.#total.byte(byte);
    if (this.#pairs < MAX_ENTRIES && this.#label.length < MAX_LABEL_BYTES) this.#label.push(byte);
  }

  valueByte(byte: number): void {
    if (this.#state !== 'value') this.#beginValue();
    this.#total.byte(byte);
  }

  badEscape(): void {
    this.#hasBadEscape = true;
  }

  pairEnd({ hasEquals, isEmpty }: { hasEquals: boolean; isEmpty: boolean }): void {
    const total = this.#total;
    if (isEmpty) {
      total.byte(EMPTY);
      return;
    }
    if (this.#state !== 'value') this.#beginValue();
    const valueStart = total.endField();
    const marker = hasEquals ? WITH_VALUE : WITHOUT_VALUE;
    total.bytes[this.#pairStart] = marker;
    this.#state = 'empty';
    if (this.#pairs++ < MAX_ENTRIES) {
      const name = total.bytes.slice(this.#pairStart + 1 + LENGTH_BYTES, this.#nameEnd);
      const value = total.bytes.subarray(valueStart, total.position);
      const label = readableLabel(Uint8Array.from(this.#label));
      this.#label = [];
      this.#entries.push({ label, name, content: Uint8Array.of(marker, ...value) });
    }
    total.endGroup();
  }

  #beginName(): void {
    this.#state = 'name';
    this.#total.beginGroup();
    this.#pairStart = this.#total.position;
    this.#total.byte(EMPTY);
    this.#total.beginField();
  }

  #beginValue(): void {
    if (this.#state === 'empty') this.#beginName();
    this.#total.endField();
    this.#nameEnd = this.#total.position;
    this.#state = 'value';
    this.#total.beginField();
  }
}
