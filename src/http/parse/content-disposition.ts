import { latin1 } from '../platform.ts';

/** What a part of a form says of itself. */
export interface Disposition {
  /** Raw bytes of the name, one character each; undefined where there is none, or more than one reading. */
  readonly name: string | undefined;
  readonly hasFilename: boolean;
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const TYPE = /^[ \t]*form-data[ \t]*/i;
const PARAMETER = /* @__PURE__ */ new RegExp(
  `;[ \\t]*(${TOKEN})[ \\t]*=[ \\t]*(${TOKEN}|"((?:[^"\\\\]|\\\\.)*)")[ \\t]*`,
  'y',
);
/** What a parser that only looks for a pattern could take for a name. */
const NAME_LIKE = /name[ \t]*(?:\*[ \t0-9*]*)?=/gi;

/**
 * Reads `form-data; name="…"; filename="…"`. Parsers disagree on anything less plain (a name given twice, `name*`, escapes in it, a
 * file name that contains `name=`), so that none of these has a name here.
 * @param values every Content-Disposition of the part
 */
export function parseDisposition(values: readonly Uint8Array[]): Disposition {
  const raw = values.length === 1 ? latin1(values[0] as Uint8Array) : '';
  const unclear = { name: undefined, hasFilename: /filename/i.test(raw) };
  const type = TYPE.exec(raw);
  if (type === null) return unclear;
  const parameters = new Map<string, string>();
  let at = type[0].length;
  while (at < raw.length) {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(raw);
    if (match === null) return unclear;
    at = PARAMETER.lastIndex;
    const parameter = (match[1] as string).toLowerCase();
    if (parameters.has(parameter)) return unclear;
    parameters.set(parameter, match[3] ?? (match[2] as string));
  }
  const name = parameters.get('name');
  const known = ['name', 'filename', 'filename*'].filter((parameter) => parameters.has(parameter)).length;
  if (name === undefined || name.includes('\\') || raw.match(NAME_LIKE)?.length !== known) return unclear;
  return { name, hasFilename: known > 1 };
}
