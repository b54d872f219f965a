import type { OutgoingHttpHeaders } from 'node:http';
import type { HeaderFields } from 'headgate/http';

const NAME = /^access-control-/i;

/**
 * The fields of an answer, with the given CORS fields in place of its own CORS fields.
 * @param fields names and values in one flat list
 * @param cors names in lower case; undefined if the gateway leaves CORS to the upstream
 */
export function withCors(fields: readonly string[], cors: HeaderFields | undefined): readonly string[] {
  if (cors === undefined) return fields;
  const result: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2)
    if (!NAME.test(fields[i] as string)) result.push(fields[i] as string, fields[i + 1] as string);
  // A second Vary adds to the first one (RFC 9110, section 5.3).
  return result.concat(...Object.entries(cors));
}

/** The same for fields by name. */
export function withCorsFields(fields: OutgoingHttpHeaders, cors: HeaderFields | undefined): OutgoingHttpHeaders {
  if (cors === undefined) return fields;
  const result: OutgoingHttpHeaders = {};
  let own: string | string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    if (name.toLowerCase() === 'vary') own = value as string | string[];
    else if (!NAME.test(name)) result[name] = value;
  }
  const vary = [own, cors.vary ?? []].flat();
  return Object.assign(result, cors, vary.length > 0 && { vary: vary.join(', ') });
}
