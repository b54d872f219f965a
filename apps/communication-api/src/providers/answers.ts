/** How long a provider can ask to wait, in seconds: eleven days. A longer time is a mistake. */
const LONGEST_WAIT = 999_999;

/**
 * @throws Error without the text, which may contain a token. The error of JSON.parse quotes the text, and errors are
 * logged
 */
export function parseAnswer<Answer>(text: string): Answer {
  try {
    return JSON.parse(text) as Answer;
  } catch {
    throw new Error('The answer is not JSON.');
  }
}

/** The seconds of the field `retry-after`. Undefined if the field is missing or too large. */
export function retryAfterOf(headers: Headers): number | undefined {
  const text = headers.get('retry-after') ?? '';
  return /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}

/** The seconds until a time, at least one. Undefined if it is not a time, or too far away. */
export function secondsUntil(time: string, now: number): number | undefined {
  const seconds = Math.max(1, Math.ceil((Date.parse(time) - now) / 1_000));
  return seconds <= LONGEST_WAIT ? seconds : undefined;
}

/** The name of an error, such as `ErrorItemNotFound`, or nothing: a machine in between may be the one that answered. */
export const errorNameOf = (text: unknown): string =>
  typeof text === 'string' && /^[A-Za-z_]{1,80}$/.test(text) ? text : '';
