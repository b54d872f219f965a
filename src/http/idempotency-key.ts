/** A key that cannot be taken (I1): 422, before anything is claimed. `detail` may be shown to the client. */
export interface KeyFault {
  readonly detail: string;
}

const MAX_LENGTH = 255;

/**
 * The idempotency key of a request (I1).
 * @param values of every `Idempotency-Key` field, as they came: lists are not taken apart, since a comma may stand in a key
 * @returns undefined where there is none
 */
export function readIdempotencyKey(values: readonly string[]): string | KeyFault | undefined {
  const [key] = values;
  if (key === undefined) return undefined;
  if (values.length > 1) return { detail: 'The header Idempotency-Key is given more than once.' };
  if (key === '') return { detail: 'The header Idempotency-Key is empty: leave it out, or send a key.' };
  if (key.length > MAX_LENGTH) {
    return { detail: `The header Idempotency-Key has ${key.length} characters; it may have ${MAX_LENGTH}.` };
  }
  return /^[\x20-\x7e]+$/.test(key)
    ? key
    : { detail: 'The header Idempotency-Key has other characters than printable ASCII.' };
}
