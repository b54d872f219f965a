import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Outcome, Passage } from '../../gate/gate.ts';
import { type HeaderFields, RATE_LIMIT_FIELD_NAMES } from '../../http/rate-limit-fields.ts';
import { streamOf } from './http.ts';

/** What `writeHead` takes: an object, or names and values in one list, or in pairs. */
export type HeadersInput = OutgoingHttpHeaders | OutgoingHttpHeader[];

/**
 * Settles a passage as its head is written, since only then is it known whether the answer is the provider's own 429 (S16).
 * @param first of `writeHead`, behind the status: a reason or fields
 * @returns what is to be given to `writeHead` as fields
 */
export function settleHead(
  response: ServerResponse,
  passage: Passage,
  outcome: Outcome,
  first: string | HeadersInput | undefined,
  second: HeadersInput | undefined,
): OutgoingHttpHeaders {
  const { headers, stripRateLimit } = passage.settle(outcome);
  const given = typeof first === 'string' ? second : (first ?? second);
  if (stripRateLimit) for (const name of RATE_LIMIT_FIELD_NAMES) response.removeHeader(name);
  const replaced = stripRateLimit ? RATE_LIMIT_FIELD_NAMES : Object.keys(headers);
  return withFields(headers, replaced, Array.isArray(given) ? pairs(given) : given);
}

/** What a handler gives to `writeHead` wins over what was set before: so the fields that are ours to say are replaced in it. */
function withFields(
  ours: HeaderFields,
  replaced: readonly string[],
  given: OutgoingHttpHeaders = {},
): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = {};
  for (const name of Object.keys(given))
    if (replaced.length === 0 || !replaced.includes(name.toLowerCase())) all[name] = given[name];
  for (const name in ours) all[name] = ours[name];
  return all;
}

/** Names and values in one flat array, or in pairs, as an object; a name that comes again, in whatever case, becomes a list. */
function pairs(given: readonly unknown[]): OutgoingHttpHeaders {
  const flat = given.flat(1) as string[];
  const all: OutgoingHttpHeaders = Object.create(null);
  const names = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const given = flat[i] as string;
    const name = names.get(given.toLowerCase()) ?? given;
    names.set(given.toLowerCase(), name);
    const value = flat[i + 1] as string;
    const before = all[name];
    all[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [String(before)]), value];
  }
  return all;
}

/** The head of an answer as the handler left it. */
export class AnswerHead {
  readonly status: number;
  readonly #reason: string;
  readonly #fields: readonly (readonly [string, number | string | string[]])[];

  constructor(response: ServerResponse) {
    this.status = response.statusCode;
    // HTTP/2 has none, and warns of whoever asks.
    this.#reason = streamOf(response) ? '' : response.statusMessage;
    this.#fields = rawNames(response).map((name) => [name, response.getHeader(name) ?? '']);
  }

  /** Names and values in one list. */
  get fields(): string[] {
    return this.#fields.flatMap(([name, value]) => [value].flat().flatMap((one) => [name, String(one)]));
  }

  /** Sets the response to it, whatever was set meanwhile. */
  restore(response: ServerResponse): void {
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    response.statusCode = this.status;
    if (!streamOf(response)) response.statusMessage = this.#reason;
    for (const [name, value] of this.#fields) response.setHeader(name, value);
  }
}

/** In the case in which they were set, of which HTTP/2 knows none. Node's types have it for requests only. */
function rawNames(response: ServerResponse & { getRawHeaderNames?(): string[] }): string[] {
  return response.getRawHeaderNames?.() ?? response.getHeaderNames();
}
