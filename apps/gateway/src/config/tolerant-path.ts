/** How often a path is decoded again: by a proxy behind the gateway, and by a framework behind that proxy. */
const DECODINGS = 2;
const ENCODED = /(?:%[0-9a-f]{2})+/gi;
/** Many servers, or the databases behind them, drop these characters. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;
const MARKS = /\p{M}+/gu;
const ONE_MARK = '\u0301';
/** Only these can become a dot. */
const MAY_HAVE_DOTS = /[.%\u0080-\uffff]/;
/** A dot segment, also with spaces around it, or before a character at which some servers cut the segment off. */
const DOT_SEGMENT = /(?:^|[/\\])\s*\.\s*(?:\.\s*)?(?:[;?#][^/\\]*)?(?=[/\\]|$)/;

/**
 * Whether some server reads a dot segment in a path. Servers differ in how often they decode, which characters they
 * drop, at which characters they cut a segment off, and which characters they take for a dot.
 * @param path decoded once
 */
export function hasDotSegment(path: string): boolean {
  return MAY_HAVE_DOTS.test(path) && DOT_SEGMENT.test(plain(path));
}

/**
 * The segments of a path as the most tolerant server reads them: without case, path parameters, empty segments, and
 * dots and spaces at the end of a segment. If two paths give equal results, an upstream may take one path for the
 * other.
 * @param path decoded once
 */
export function tolerantSegments(path: string): string[] {
  return plain(path)
    .toLowerCase()
    .split(/[/\\]/)
    .map((segment) => withoutEnd(segment.split(/[;?#]/, 1)[0] as string))
    .filter((segment) => segment !== '');
}

/** The path in ASCII as far as some server takes its characters for ASCII, and decoded as often as some server does. */
function plain(path: string): string {
  let text = path;
  for (let i = 0; i < DECODINGS && text.includes('%'); i++) text = text.replace(ENCODED, decoded);
  // A letter with a mark is never ASCII. A long run of marks would take quadratic time to normalise.
  return text.replace(INVISIBLE, '').replace(MARKS, ONE_MARK).normalize('NFKC');
}

/** Invalid UTF-8 becomes a replacement character, because the rest of the path still counts. */
function decoded(run: string): string {
  return Buffer.from(run.replaceAll('%', ''), 'hex').toString();
}

/** A loop, because a regular expression would take quadratic time for many dots in the middle. */
function withoutEnd(segment: string): string {
  let end = segment.length;
  while (end > 0 && /[\s.]/.test(segment.charAt(end - 1))) end--;
  return segment.slice(0, end).trimStart();
}
