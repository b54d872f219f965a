import { type Refusal, refuse } from '../exchange/refusal.ts';

/** A request target in origin form, as it came: nothing is decoded, and it is forwarded like this. */
export interface Target {
  /** Path with its leading slash, raw. */
  readonly path: string;
  /** Raw query string without its question mark; undefined where there is no question mark. */
  readonly query: string | undefined;
}

const VISIBLE = /^[\x21-\x7e]+$/;
const ENCODED_SEPARATOR = /%(2f|5c)/i;
const BAD_ENCODING = /%(?![0-9a-f]{2})/i;
/** A dot segment, raw or encoded; with what follows a semicolon, since some servers cut that off before they resolve it. */
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?:;[^/]*|%3b[^/]*)?(?=\/|$)/i;

/**
 * Takes a target apart, or refuses what could mean another path to the upstream than it does to the router: encoded slashes and
 * backslashes, dot segments, broken encodings, absolute forms. Double slashes are a path like any other.
 */
export function readTarget(raw: string): Target | Refusal {
  if (!raw.startsWith('/')) return malformed('The request target must be a path.');
  if (!VISIBLE.test(raw)) return malformed('The request target has a character that must be encoded.');
  if (raw.includes('#')) return malformed('The request target has a fragment.');
  const mark = raw.indexOf('?');
  const path = mark === -1 ? raw : raw.slice(0, mark);
  if (path.includes('\\') || ENCODED_SEPARATOR.test(path))
    return malformed('The path has an encoded slash or a backslash.');
  if (DOT_SEGMENT.test(path)) return malformed('The path has a dot segment.');
  if (BAD_ENCODING.test(path) || !isDecodable(path)) return malformed('The path has a malformed percent-encoding.');
  return { path, query: mark === -1 ? undefined : raw.slice(mark + 1) };
}

function malformed(detail: string): Refusal {
  return refuse(400, 'errors/malformed_request', detail);
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
