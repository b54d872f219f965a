import { bytesOfLatin1, latin1 } from '../platform.ts';
import { matchParameters, TOKEN } from './parameters.ts';
import { type PartHeader, partHeaderValues } from './part-headers.ts';

/** The `Content-Disposition` of one part of a form. */
export interface Disposition {
  /** Raw bytes of the name; undefined if there is no name, or if parsers may read it in more than one way. */
  readonly name: Uint8Array | undefined;
  readonly hasFilename: boolean;
}

const TYPE = /^[ \t]*form-data[ \t]*/i;
const PARAMETER = /* @__PURE__ */ new RegExp(
  `;[ \\t]*(${TOKEN})[ \\t]*=[ \\t]*(${TOKEN}|"((?:[^"\\\\]|\\\\.)*)")[ \\t]*`,
  'y',
);
/** Text that a parser which only searches for a pattern could read as a name. */
const NAME_LIKE = /name[ \t]*(?:\*[ \t0-9*]*)?=/gi;

/**
 * Reads `form-data; name="…"; filename="…"`. Parsers disagree on anything less plain: a name given twice, `name*`,
 * escapes in the name, a file name that contains `name=`. Here, such a part is unnamed.
 * @param headers all headers of the part
 */
export function parseDisposition(headers: readonly PartHeader[]): Disposition {
  const values = partHeaderValues(headers, 'content-disposition');
  const raw = values.length === 1 ? latin1(values[0] as Uint8Array) : '';
  const unclear = { name: undefined, hasFilename: /filename/i.test(raw) };
  const type = TYPE.exec(raw);
  const matches = type === null ? undefined : matchParameters(PARAMETER, raw, type[0].length);
  if (matches === undefined) return unclear;
  const parameters = new Map(matches.map(([, key, value, unquoted]) => [key?.toLowerCase(), unquoted ?? value]));
  const name = parameters.get('name');
  const known = ['name', 'filename', 'filename*'].filter((parameter) => parameters.has(parameter)).length;
  const isRepeated = parameters.size < matches.length;
  if (name === undefined || isRepeated || name.includes('\\') || raw.match(NAME_LIKE)?.length !== known) return unclear;
  return { name: bytesOfLatin1(name), hasFilename: known > 1 };
}
