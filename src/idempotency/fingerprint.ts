import { builtinModule } from '../base/builtin-module.ts';
import { OptionError } from '../base/errors.ts';
import { after, type MaybePromise } from '../base/maybe-promise.ts';
import { isPlainObject } from '../base/options.ts';

/** Version of the rules that convert a request to bytes. In every fingerprint, so that two versions never match. */
const VERSION = 'run1';
const MAX_DEPTH = 256;
const encoder = /* @__PURE__ */ new TextEncoder();

/**
 * SHA-256 of the request that is passed to `run`: text and bytes as they are, everything else as JSON with sorted keys.
 * @throws OptionError if two different requests could get the same fingerprint
 */
export function fingerprintOf(request: unknown): MaybePromise<string> {
  if (typeof request === 'string') return hash('bytes', request);
  if (request instanceof Uint8Array) return hash('bytes', request);
  return hash('json', canonical(request, 'request', 0));
}

function hash(kind: 'bytes' | 'json', content: string | Uint8Array): MaybePromise<string> {
  const digest = sha256(content);
  return after(digest, (hex) => `${VERSION}-${kind}-${hex}`);
}

interface NodeCrypto {
  hash?(algorithm: string, data: string | Uint8Array, encoding: 'hex'): string;
}

/** Hashes synchronously, without the thread pool. */
const node = /* @__PURE__ */ builtinModule<NodeCrypto>('node:crypto');

function sha256(content: string | Uint8Array): MaybePromise<string> {
  if (node?.hash !== undefined) return node.hash('sha256', content, 'hex');
  const bytes = typeof content === 'string' ? encoder.encode(content) : Uint8Array.from(content);
  return crypto.subtle.digest('SHA-256', bytes).then(toHex);
}

function toHex(digest: ArrayBuffer): string {
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** JSON with sorted keys. Throws for a value that JSON would drop, or write like another value. */
function canonical(value: unknown, place: string, depth: number): string {
  if (depth > MAX_DEPTH) throw new OptionError(place, value, `must not be nested deeper than ${MAX_DEPTH}`);
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value !== 'object') throw new OptionError(place, value, 'must be text, bytes or JSON');
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return canonical(toJSON.call(value), place, depth + 1);
  if (Array.isArray(value)) {
    return `[${Array.from(value, (item, index) => canonical(item, `${place}[${index}]`, depth + 1)).join(',')}]`;
  }
  // JSON writes every Map and every FormData as {}, whatever it contains.
  if (!isPlainObject(value)) throw new OptionError(place, value, 'must be text, bytes or JSON');
  const properties = Object.entries(value)
    .filter(([, property]) => property !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, property]) => `${JSON.stringify(name)}:${canonical(property, `${place}.${name}`, depth + 1)}`);
  return `{${properties.join(',')}}`;
}
