import { ServiceError } from '../domain/service-error.ts';

/** More objects, arrays and values of them than any request needs. */
const MAX_VALUES = 20_000;
const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b];

/**
 * Counts the values of JSON before it is parsed, because a short text can contain millions of them. The count is about
 * right: the commas and opening brackets outside of strings.
 */
export class JsonValues {
  #count = 0;
  #isInString = false;
  #isEscaped = false;

  /** The next bytes of the JSON. @throws ServiceError 422 if it contains too many values */
  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === QUOTE) this.#isInString = !this.#isInString;
      else if (this.#isInString) this.#isEscaped = byte === BACKSLASH;
      else if (byte === COMMA || byte === BRACKET || byte === BRACE) this.#count++;
    }
    if (this.#count > MAX_VALUES)
      throw new ServiceError(422, 'errors/unprocessable_entity', `The JSON contains more than ${MAX_VALUES} values.`);
  }
}
