import { BodyError, type BodyErrorReason } from '../body-error.ts';
import { foldName } from './fold-name.ts';

/** Reads one field out of a body while that comes in. */
export interface FieldReader {
  /** Throws a `BodyError` (422) as soon as it is certain that there is no one value. */
  write(bytes: Uint8Array): void;
  /** The value, once the body is complete; throws likewise. */
  end(): string;
}

/** The one value that a field must have. */
export class Found {
  #value: string | undefined;
  readonly #folded: string;

  /**
   * @param name of the field
   * @param maxBytes bound of its value
   * @param place what it is a field of; a query is a form that stands in the head
   */
  constructor(
    readonly name: string,
    readonly maxBytes: number,
    readonly place: 'body' | 'query' = 'body',
  ) {
    this.#folded = foldName(name);
  }

  /** Whether it is this field; a name that some server takes for it is refused. */
  matches(candidate: string): boolean {
    if (candidate === this.name) return true;
    if (foldName(candidate) !== this.#folded) return false;
    throw this.error('field_ambiguous', 'has another field beside it that can be taken for it');
  }

  /** @param value undefined where it is no text */
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
    return this.error('field_ambiguous', `cannot be told with certainty: ${why}`);
  }

  error(reason: BodyErrorReason, problem: string): BodyError {
    return new BodyError(422, reason, `The field ${this.name} of the ${this.place} ${problem}.`);
  }
}
