/** A malformed key: 422, before anything is claimed (I1). `detail` may be shown to the client. */
export interface KeyFault {
  readonly detail: string;
}

/** The detail of the 400 for a request without the key that its route requires (I1). */
export const MISSING_KEY_DETAIL =
  'This operation needs the header Idempotency-Key: send a random UUID, and the same one with each retry.';

const MAX_LENGTH = 255;
/** A string of RFC 9651, 3.3.3, the form of draft-ietf-httpapi-idempotency-key-header-07: `"abc"`. */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/**
 * Reads the idempotency key of a request (I1). `"abc"`, the quoted form of draft-ietf-httpapi-idempotency-key-header,
 * and `abc` are the same key.
 * @param values of every `Idempotency-Key` field, as received. A value is never split at commas, because a key may
 * contain a comma.
 * @returns the key without quotes; undefined if there is no key
 */
export function readIdempotencyKey(values: readonly string[]): string | KeyFault | undefined {
  const [value] = values;
  if (value === undefined) return undefined;
  if (values.length > 1) return { detail: 'The header Idempotency-Key is given more than once: send one key.' };
  const key = QUOTED.exec(value)?.[1]?.replace(/\\(.)/g, '$1') ?? value;
  if (key === '') return { detail: 'The header Idempotency-Key is empty: send a key, or leave the header out.' };
  if (key.length > MAX_LENGTH) {
    return { detail: `The header Idempotency-Key has ${key.length} characters; the maximum is ${MAX_LENGTH}.` };
  }
  return /^[\x20-\x7e]+$/.test(key)
    ? key
    : { detail: 'The header Idempotency-Key may contain only printable ASCII characters.' };
}
