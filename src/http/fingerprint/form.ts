import { type FormHandler, FormParser } from '../parse/form.ts';
import {
  type BodyEntry,
  type BodyFingerprint,
  type BodyFingerprinter,
  BytesFingerprinter,
  MAX_ENTRIES,
  readableLabel,
} from './body-fingerprint.ts';
import { DigestBuffer } from './digest-buffer.ts';

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
  readonly #name = new DigestBuffer();
  readonly #value = new DigestBuffer();
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
    this.#name.byte(byte);
    if (this.#pairs < MAX_ENTRIES && this.#label.length < MAX_LABEL_BYTES) this.#label.push(byte);
  }

  valueByte(byte: number): void {
    this.#value.byte(byte);
  }

  badEscape(): void {
    this.#hasBadEscape = true;
  }

  pairEnd({ hasEquals, isEmpty }: { hasEquals: boolean; isEmpty: boolean }): void {
    if (isEmpty) {
      this.#total.byte(EMPTY);
      return;
    }
    const [name, value] = [this.#name.finish(), this.#value.finish()];
    const marker = hasEquals ? WITH_VALUE : WITHOUT_VALUE;
    this.#total.byte(marker);
    this.#total.field(name);
    this.#total.field(value);
    if (this.#pairs++ >= MAX_ENTRIES) return;
    const label = readableLabel(Uint8Array.from(this.#label));
    this.#label = [];
    this.#entries.push({ label, name, content: Uint8Array.of(marker, ...value) });
  }
}
