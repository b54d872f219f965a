import { type FormHandler, FormParser } from '../parse/form.ts';
import { type BodyEntry, type BodyPrint, type BodyPrinter, labelOf, MAX_ENTRIES } from './body-print.ts';
import { BytesPrinter } from './bytes.ts';
import { Sink } from './sink.ts';

const MAX_LABEL_BYTES = 64;
const [EMPTY, WITHOUT_VALUE, WITH_VALUE] = [0, 1, 2];

/**
 * A form by its percent-decoded pairs, in their order. `a` and `a=` are two things, so are `a=1` and `a=1&`. A percent sign that begins no
 * escape leaves the bytes: servers disagree on it.
 */
export class FormPrinter implements BodyPrinter, FormHandler {
  readonly #parser = new FormParser(this);
  readonly #bytes = new BytesPrinter();
  readonly #total = new Sink();
  readonly #name = new Sink();
  readonly #value = new Sink();
  #label: number[] = [];
  #entries: BodyEntry[] = [];
  #pairs = 0;
  #isBad = false;

  write(bytes: Uint8Array): void {
    this.#bytes.write(bytes);
    if (!this.#isBad) this.#parser.write(bytes);
  }

  end(): BodyPrint {
    if (!this.#isBad) this.#parser.end();
    if (this.#isBad) return this.#bytes.end();
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
    this.#isBad = true;
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
    const label = labelOf(Uint8Array.from(this.#label));
    this.#label = [];
    this.#entries.push({ label, name, content: Uint8Array.of(marker, ...value) });
  }
}
