/** A malformed key: 422, before anything is claimed (I1). `detail` may be shown to the client. */
export interface KeyFault {
  readonly detail: string;
}

const MAX_LENGTH = 255;

/**
 * Reads the idempotency key of a request (I1).
 * @param values of every `Idempotency-Key` field, as received. A value is never split at commas, because a key may
 * contain a comma.
 * @returns undefined if there is no key
 */
export function readIdempotencyKey(values: readonly string[]): string | KeyFault | undefined {
  const [key] = values;
  if (key === undefined) return undefined;
  if (values.length > 1) return { detail: 'The header Idempotency-Key is given more than once: send one key.' };
  if (key === '') return { detail: 'The header Idempotency-Key is empty: send a key, or leave the header out.' };
  if (key.length > MAX_LENGTH) {
    return { detail: `The header Idempotency-Key has ${key.length} characters; the maximum is ${MAX_LENGTH}.` };
  }
  return /^[\x20-\x7e]+$/.test(key)
    ? key
    : { detail: 'The header Idempotency-Key may contain only printable ASCII characters.' };
}
