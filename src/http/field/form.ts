import { BodyError } from '../body-error.ts';
import { type FormHandler, FormParser } from '../parse/form.ts';
import { Bytes } from './bytes.ts';
import type { FieldReader, Found } from './field-value.ts';

/** Longest name that is looked at, in bytes. */
const MAX_NAME_BYTES = 4_096;
/** Servers ignore or refuse what comes after as many. */
const MAX_PAIRS = 1_000;
const EQUALS = 0x3d;

/** A field of a form. */
export class FormField implements FieldReader, FormHandler {
  readonly #parser = new FormParser(this);
  readonly #name = new Bytes(MAX_NAME_BYTES);
  readonly #value: Bytes;
  readonly #byte = new Uint8Array(1);
  /** Of the pair under way; undefined while its name comes in. */
  #isFound: boolean | undefined;
  /** What a server reads as a name that takes a semicolon for the end of a pair. */
  readonly #hidden = new Bytes(MAX_NAME_BYTES);
  /** Where in such a name we are: at its semicolon, in it, or in none. */
  #hiddenState: 'begins' | 'in' | 'none' = 'none';
  #pairs = 0;

  constructor(private readonly found: Found) {
    this.#value = new Bytes(found.maxBytes);
  }

  write(bytes: Uint8Array): void {
    this.#parser.write(bytes);
  }

  end(): string {
    this.#parser.end();
    return this.found.get();
  }

  nameByte(byte: number): void {
    this.#byte[0] = byte;
    this.#addHidden();
    if (!this.#name.add(this.#byte)) {
      throw this.found.ambiguous(`there is a field with a name of more than ${MAX_NAME_BYTES} bytes`);
    }
  }

  valueByte(byte: number): void {
    if (this.#isFound === undefined) this.#beginValue();
    this.#byte[0] = byte;
    if (byte === EQUALS) this.#endHidden();
    else this.#addHidden();
    if (this.#isFound && !this.#value.add(this.#byte)) throw this.found.tooLong();
  }

  badEscape(inValue: boolean): void {
    if (inValue && this.#isFound === undefined) this.#beginValue();
    // In another field's value it is nobody's concern.
    if (!inValue || this.#isFound) throw this.#malformed('a malformed percent-encoding');
  }

  bareSemicolon(inValue: boolean): void {
    if (inValue && this.#isFound === undefined) this.#beginValue();
    if (this.#isFound) throw this.found.ambiguous('its value has a semicolon');
    // What stands before the first one is a name as well.
    if (!inValue && this.#hiddenState === 'none') this.#refuse(this.#name.peek());
    this.#endHidden();
    this.#hiddenState = 'begins';
  }

  pairEnd({ isEmpty }: { isEmpty: boolean }): void {
    if (isEmpty) return;
    if (++this.#pairs > MAX_PAIRS) throw this.#malformed(`more than ${MAX_PAIRS} fields`);
    if (this.#isFound === undefined) this.#beginValue();
    this.#endHidden();
    if (this.#isFound) this.found.set(this.#value.text());
    this.#isFound = undefined;
  }

  #addHidden(): void {
    if (this.#hiddenState === 'begins') this.#hiddenState = 'in';
    // Too long a name is none that is looked for.
    else if (this.#hiddenState === 'in' && !this.#hidden.add(this.#byte)) this.#hiddenState = 'none';
  }

  #endHidden(): void {
    const name = this.#hidden.text();
    if (this.#hiddenState === 'in') this.#refuse(name);
    this.#hiddenState = 'none';
  }

  /** @param name that only some servers see */
  #refuse(name: string | undefined): void {
    if (name !== undefined && this.found.matches(name))
      throw this.found.ambiguous('it stands beside a semicolon as well');
  }

  /** The name is complete. */
  #beginValue(): void {
    this.#endHidden();
    this.#isFound = this.#matches();
  }

  #matches(): boolean {
    const name = this.#name.text();
    if (name === undefined) throw this.found.ambiguous('there is a name that is not UTF-8');
    return this.found.matches(name);
  }

  #malformed(what: string): BodyError {
    const form = this.found.place === 'body' ? 'form' : 'query';
    return new BodyError(422, 'malformed_form', `The ${form} cannot be read: it has ${what}.`);
  }
}
