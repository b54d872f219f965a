import { BodyError } from '../body-error.ts';
import { type FormHandler, FormParser } from '../parse/form.ts';
import { BoundedBuffer } from './bounded-buffer.ts';
import type { FieldReader, FieldValue } from './field-value.ts';

/** Longest name that is compared, in bytes. */
const MAX_NAME_BYTES = 4_096;
/** Servers ignore or refuse the fields after this many. */
const MAX_PAIRS = 1_000;
const EQUALS = 0x3d;

/** Reads a field of a form. */
export class FormField implements FieldReader, FormHandler {
  readonly #parser = new FormParser(this);
  readonly #name = new BoundedBuffer(MAX_NAME_BYTES);
  readonly #value: BoundedBuffer;
  /** Whether the current pair is the field; undefined while its name arrives. */
  #isMatch: boolean | undefined;
  /** A name that is seen only by servers at which a semicolon ends a pair. */
  readonly #semicolonName = new BoundedBuffer(MAX_NAME_BYTES);
  /** Whether the next byte is the semicolon before such a name, is part of the name, or neither. */
  #semicolonState: 'semicolon' | 'name' | 'none' = 'none';
  #pairs = 0;

  constructor(private readonly field: FieldValue) {
    this.#value = new BoundedBuffer(field.maxBytes);
  }

  write(bytes: Uint8Array): void {
    this.#parser.write(bytes);
  }

  end(): string {
    this.#parser.end();
    return this.field.get();
  }

  nameByte(byte: number): void {
    this.#addToSemicolonName(byte);
    if (!this.#name.addByte(byte)) {
      throw this.field.ambiguous(`another field has a name of more than ${MAX_NAME_BYTES} bytes`);
    }
  }

  valueByte(byte: number): void {
    if (this.#isMatch === undefined) this.#beginValue();
    if (byte === EQUALS) this.#endSemicolonName();
    else this.#addToSemicolonName(byte);
    if (this.#isMatch && !this.#value.addByte(byte)) throw this.field.tooLong();
  }

  badEscape(inValue: boolean): void {
    if (inValue && this.#isMatch === undefined) this.#beginValue();
    // In the value of another field it does not matter.
    if (!inValue || this.#isMatch) throw this.#malformed('a malformed percent-encoding');
  }

  bareSemicolon(inValue: boolean): void {
    if (inValue && this.#isMatch === undefined) this.#beginValue();
    if (this.#isMatch) throw this.field.ambiguous('its value contains a semicolon');
    // To those servers, the text before a name's first semicolon is a name too.
    if (!inValue && this.#semicolonState === 'none') this.#refuse(this.#name.peekText());
    this.#endSemicolonName();
    this.#semicolonState = 'semicolon';
  }

  pairEnd({ isEmpty }: { isEmpty: boolean }): void {
    if (isEmpty) return;
    if (++this.#pairs > MAX_PAIRS) throw this.#malformed(`more than ${MAX_PAIRS} fields`);
    if (this.#isMatch === undefined) this.#beginValue();
    this.#endSemicolonName();
    if (this.#isMatch) this.field.set(this.#value.takeText());
    this.#isMatch = undefined;
  }

  #addToSemicolonName(byte: number): void {
    if (this.#semicolonState === 'semicolon') this.#semicolonState = 'name';
    else if (this.#semicolonState === 'name' && !this.#semicolonName.addByte(byte)) {
      // A name that is too long is not the name of the field.
      this.#semicolonName.take();
      this.#semicolonState = 'none';
    }
  }

  #endSemicolonName(): void {
    if (this.#semicolonState === 'name') this.#refuse(this.#semicolonName.takeText());
    this.#semicolonState = 'none';
  }

  /** @param name one that only some servers see */
  #refuse(name: string | undefined): void {
    if (name !== undefined && this.field.matches(name))
      throw this.field.ambiguous('it also appears next to a semicolon');
  }

  /** Called when the name is complete. */
  #beginValue(): void {
    this.#endSemicolonName();
    const name = this.#name.takeText();
    if (name === undefined) throw this.field.ambiguous('the name of another field is not UTF-8');
    this.#isMatch = this.field.matches(name);
  }

  #malformed(what: string): BodyError {
    const form = this.field.place === 'body' ? 'form' : 'query';
    return new BodyError(422, 'malformed_form', `The ${form} cannot be read: it has ${what}.`);
  }
}
