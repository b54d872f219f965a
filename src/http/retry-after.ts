/** Every form of a date in HTTP begins so (RFC 9110, 5.6.7). `Date.parse` also takes `1.5` and `-1` for dates. */
const DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/;

/**
 * The field `retry-after` in milliseconds, 0 or more: a number of seconds, of which some servers send fractions, or a
 * date. Undefined if it is missing or not valid. It is untrusted: bound the result.
 * @param header reads a field by its name in lower case
 * @param now the time with which a date is compared if the response lacks the server's own, its field `date`; without it,
 * such a date is not valid
 */
export function retryAfterMs(
  header: (name: string) => string | null | undefined,
  now = Number.NaN,
): number | undefined {
  const value = header('retry-after')?.trim();
  if (value === undefined) return undefined;
  if (/^\d{1,15}(?:\.\d{1,15})?$/.test(value)) return Math.ceil(Number(value) * 1_000);
  if (!DATE.test(value)) return undefined;
  const date = header('date');
  const ms = Date.parse(value) - (typeof date === 'string' ? Date.parse(date) : now);
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
