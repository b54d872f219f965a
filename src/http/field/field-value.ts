import { BodyError, type BodyErrorReason } from '../body-error.ts';
import { FoldedName } from './folded-name.ts';

/** Reads one field out of a body while the body arrives. */
export interface FieldReader {
  /** @throws BodyError (422) as soon as it is certain that the field does not hold exactly one value */
  write(bytes: Uint8Array): void;
  /**
   * Returns the value. Call it once, after the last byte of the body.
   * @throws BodyError (422)
   */
  end(): string;
}

/** The value of one field, which must be given exactly once, as text that is not empty. */
export class FieldValue {
  #value: string | undefined;
  readonly #folded: FoldedName;

  /**
   * @param name of the field
   * @param maxBytes maximum length of the value, in bytes of UTF-8
   * @param place for error messages; a query string is read as a form
   */
  constructor(
    readonly name: string,
    readonly maxBytes: number,
    readonly place: 'body' | 'query' = 'body',
  ) {
    this.#folded = new FoldedName(name);
  }

  /**
   * Whether `candidate` is the name of this field.
   * @throws BodyError (422) if it is another name that some server treats as the same one
   */
  matches(candidate: string): boolean {
    if (candidate === this.name) return true;
    if (!this.#folded.matches(candidate)) return false;
    throw this.ambiguous('some servers read the name of another field as the same name');
  }

  /** @param value undefined if it is not text */
  set(value: string | undefined): void {
    if (this.#value !== undefined) throw this.error('field_repeated', 'is given more than once');
    if (value === undefined || value.startsWith('\uFEFF')) throw this.error('field_not_text', 'must be text in UTF-8');
    if (value === '') throw this.error('field_empty', 'is empty');
    this.#value = value;
  }

  get(): string {
    if (this.#value === undefined) throw this.error('field_missing', 'is missing');
    return this.#value;
  }

  tooLong(): BodyError {
    return this.error('field_too_long', `has more than ${this.maxBytes} bytes`);
  }

  ambiguous(why: string): BodyError {
    return this.error('field_ambiguous', `is ambiguous: ${why}`);
  }

  error(reason: BodyErrorReason, problem: string): BodyError {
    return new BodyError(422, reason, `The field ${this.name} of the ${this.place} ${problem}.`);
  }
}
