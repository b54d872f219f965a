import { describe, OptionError } from '../base/errors.ts';
import { checkOptions, isPlainObject, placeIn } from '../base/options.ts';
import type { RawFields } from './raw-fields.ts';

/** A response that every server can send. */
export interface CheckedResponse {
  readonly status: number;
  readonly fields: RawFields;
  readonly body: Uint8Array;
}

/** Statuses of responses without a body. */
const BODYLESS: readonly number[] = [204, 205, 304];

/**
 * Checks a response that a program wrote: its status, and its `headers` and `body` if they are set.
 * @param place name of the response in error messages
 * @throws OptionError
 */
export function checkResponse(response: object, place: string): CheckedResponse {
  checkOptions(response, ['status', 'headers', 'body'], place);
  const { status, headers = {}, body = '' } = response as Readonly<Record<string, unknown>>;
  if (!Number.isInteger(status) || Number(status) < 200 || Number(status) > 599)
    throw new OptionError(`${place}.status`, status, 'must be a whole number from 200 to 599');
  const fields = readHeaders(headers, `${place}.headers`);
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  if (!(bytes instanceof Uint8Array))
    throw new OptionError(`${place}.body`, body, 'must be a string, a Uint8Array or undefined');
  if (bytes.length > 0 && BODYLESS.includes(Number(status)))
    throw new OptionError(`${place}.body`, body, `must be empty with status ${status}`, `a body of ${bytes.length} B`);
  return { status: Number(status), fields, body: bytes };
}

/** @throws OptionError */
function readHeaders(headers: unknown, place: string): string[] {
  if (!isPlainObject(headers)) throw new OptionError(place, headers, 'must be a plain object');
  return Object.entries(headers).flatMap(([name, given]: [string, unknown]) => {
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name))
      throw new OptionError(place, name, 'every name must be a token of RFC 9110');
    const values: readonly unknown[] = Array.isArray(given) ? given : [given];
    return values.flatMap((value) => {
      if (typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return [name, value];
      // A field such as a cookie can hold a secret.
      const shown = typeof value === 'string' ? 'a string' : describe(value);
      const reason = 'must be a string without control characters and without characters beyond Latin-1';
      throw new OptionError(placeIn(place, name), value, reason, shown);
    });
  });
}
