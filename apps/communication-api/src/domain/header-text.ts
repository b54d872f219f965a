// biome-ignore lint/suspicious/noControlCharactersInRegex: a line break in a header would begin another header.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
/** The form of RFC 2047. Programs that read the email would decode it, and show a different text than the sent one. */
const ENCODED_WORD = /=\?[^?\s]+\?[bq]\?[^?]*\?=/i;

/** Half of a surrogate pair: UTF-8 cannot encode it. */
const LONE_SURROGATE = /\p{Surrogate}/u;

const isWellFormed = (text: string): boolean => !LONE_SURROGATE.test(text);

/** Whether a text can be stored, and comes back unchanged: PostgreSQL stores no NUL. */
export const isStorable = (text: string): boolean => !text.includes('\0') && isWellFormed(text);

/** Why a text cannot be part of a header; undefined if it can. */
export function headerTextFault(text: string): string | undefined {
  if (CONTROL.test(text)) return 'must not contain line breaks or other control characters';
  if (!isWellFormed(text)) return 'contains half of a surrogate pair';
  if (ENCODED_WORD.test(text)) return 'must be the text itself, not an encoded word (=?…?=)';
  return undefined;
}
