import { isHopByHop, namedByConnection } from './hop-by-hop.ts';
import { base64, fromBase64 } from './platform.ts';

/** An answer as it is kept for replays (I4). */
export interface StoredResponse {
  readonly status: number;
  /** Names and values in one flat list, in their order; {@link storedFields} says which. */
  readonly fields: readonly string[];
  readonly body: Uint8Array;
}

/** Of this moment, or somebody's own: never stored, never replayed, as are those of the connection (I4). */
const NEVER_KEPT: ReadonlySet<string> = new Set([
  'set-cookie',
  'date',
  'content-length',
  'retry-after',
  'x-request-id',
  'idempotency-replayed',
  'idempotency-status',
]);

const VERSION = 1;

/** Which of an answer's fields are stored. */
export type KeepField = (name: string) => boolean;

/** Everything but what belongs to the moment, the connection or a session. `name` is in lower case. */
export const keepsField: KeepField = (name) =>
  !NEVER_KEPT.has(name) && !isHopByHop(name) && !/^(x-)?ratelimit(-|$)/.test(name);

/** The fields that are stored, of names and values in one flat list. */
export function storedFields(fields: readonly string[], keeps: KeepField = keepsField): string[] {
  const named = namedByConnection(fields);
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] as string;
    const lower = name.toLowerCase();
    // What is never kept is no option.
    if (keepsField(lower) && !named.has(lower) && keeps(lower)) kept.push(name, fields[i + 1] as string);
  }
  return kept;
}

/** As text for a store: a body that is text stays text, any other is written in base64. */
export function encodeResponse({ status, fields, body }: StoredResponse): string {
  const head = JSON.stringify([VERSION, status, fields]);
  const text = textOf(body);
  return text === undefined ? `${head}\nb${base64(body)}` : `${head}\nt${text}`;
}

/** Undefined where it is not what {@link encodeResponse} writes. */
export function decodeResponse(value: string): StoredResponse | undefined {
  const end = value.indexOf('\n');
  const coding = value[end + 1];
  try {
    const [version, status, fields] = JSON.parse(value.slice(0, end)) as [unknown, unknown, unknown];
    if (version !== VERSION || !isStatus(status) || !isFields(fields)) return undefined;
    const rest = value.slice(end + 2);
    if (coding === 't') return { status, fields, body: new TextEncoder().encode(rest) };
    const body = coding === 'b' ? fromBase64(rest) : undefined;
    return body && { status, fields, body };
  } catch {
    return undefined;
  }
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 999;
}

function isFields(value: unknown): value is string[] {
  return Array.isArray(value) && value.length % 2 === 0 && value.every((part) => typeof part === 'string');
}

/** Undefined where the bytes are not exactly those of some text. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
