import { hasDotSegment } from '../config/tolerant-path.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';

/** A request target in origin form, as the client sent it. It is forwarded without any decoding. */
export interface Target {
  /** Path with its leading slash, raw. */
  readonly path: string;
  /** Raw query string without its question mark; undefined without a question mark. */
  readonly query: string | undefined;
}

const VISIBLE = /^[\x21-\x7e]+$/;
const ENCODED_SEPARATOR = /%(2f|5c)/i;
const CONTROL = /\p{Cc}/u;

/**
 * Takes a target apart. Refuses a target that the upstream could read as another path than the router does: encoded
 * slashes and backslashes, control characters, dot segments in any disguise, broken encodings, absolute forms. Double
 * slashes are allowed.
 */
export function readTarget(raw: string): Target | Refusal {
  if (!raw.startsWith('/')) return malformed('The request target must be a path.');
  if (!VISIBLE.test(raw)) return malformed('The request target has a character that must be encoded.');
  if (raw.includes('#')) return malformed('The request target has a fragment.');
  const mark = raw.indexOf('?');
  const path = mark === -1 ? raw : raw.slice(0, mark);
  if (path.includes('\\') || ENCODED_SEPARATOR.test(path))
    return malformed('The path has an encoded slash or a backslash.');
  const decoded = decode(path);
  if (decoded === undefined) return malformed('The path has a malformed percent-encoding.');
  if (CONTROL.test(decoded)) return malformed('The path has an encoded control character.');
  if (hasDotSegment(decoded)) return malformed('The path has a dot segment.');
  return { path, query: mark === -1 ? undefined : raw.slice(mark + 1) };
}

function malformed(detail: string): Refusal {
  return refuse(400, 'errors/malformed_request', detail);
}

/** Undefined if the path cannot be decoded. */
function decode(path: string): string | undefined {
  try {
    return path.includes('%') ? decodeURIComponent(path) : path;
  } catch {
    return undefined;
  }
}
