import { OptionError } from '../core/errors.ts';
import { isPlainObject } from '../core/options.ts';
import type { MaybePromise } from '../core/ports.ts';

/** Of the way in which a request becomes bytes: another way is another version, so that the two never match by accident. */
const VERSION = 'run1';
const MAX_DEPTH = 256;
const encoder = /* @__PURE__ */ new TextEncoder();

/**
 * SHA-256 of a request that is no HTTP request: text and bytes as they are, everything else as JSON with its keys in order.
 * @throws OptionError where two different requests would come out the same
 */
export function fingerprintOf(request: unknown): MaybePromise<string> {
  if (typeof request === 'string') return hashed('bytes', request);
  if (request instanceof Uint8Array) return hashed('bytes', request);
  return hashed('json', canonical(request, 'request', 0));
}

function hashed(kind: 'bytes' | 'json', content: string | Uint8Array): MaybePromise<string> {
  const digest = sha256(content);
  const named = (hex: string): string => `${VERSION}-${kind}-${hex}`;
  return typeof digest === 'string' ? named(digest) : digest.then(named);
}

interface NodeCrypto {
  hash?(algorithm: string, data: string | Uint8Array, encoding: 'hex'): string;
}

/** Node's own, where there is one: at once, and without a turn through the thread pool. Not imported, so that this also runs elsewhere. */
const node = /* @__PURE__ */ nodeCrypto();

function nodeCrypto(): NodeCrypto | undefined {
  return globalThis.process?.getBuiltinModule?.('node:crypto');
}

function sha256(content: string | Uint8Array): MaybePromise<string> {
  if (node?.hash !== undefined) return node.hash('sha256', content, 'hex');
  const bytes = typeof content === 'string' ? encoder.encode(content) : Uint8Array.from(content);
  return crypto.subtle.digest('SHA-256', bytes).then(hexOf);
}

function hexOf(digest: ArrayBuffer): string {
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** JSON with sorted keys; refuses what JSON would leave out or merge with something else. */
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
  // A Map or a FormData would be {}, whatever is in it.
  if (!isPlainObject(value)) throw new OptionError(place, value, 'must be text, bytes or JSON');
  const properties = Object.entries(value)
    .filter(([, property]) => property !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, property]) => `${JSON.stringify(name)}:${canonical(property, `${place}.${name}`, depth + 1)}`);
  return `{${properties.join(',')}}`;
}
