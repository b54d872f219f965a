import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { GateOutcome, Passage } from '../../gate/gate.ts';
import { type HeaderFields, NUMBER_FIELD_NAMES } from '../../http/rate-limit-fields.ts';
import { forEachField } from '../../http/raw-fields.ts';
import { streamOf } from './http.ts';

/** Fields as `writeHead` takes them: an object, names and values in one flat list, or a list of pairs. */
export type HeadersInput = OutgoingHttpHeaders | OutgoingHttpHeader[];

/**
 * Settles a passage when the head of its response is written. Only then is it known whether the response is the
 * provider's own 429 (S16).
 * @param first second argument of `writeHead`: a reason or fields
 * @param second third argument of `writeHead`: fields, if `first` is a reason
 * @returns the fields to pass to `writeHead`
 */
export function settleHead(
  response: ServerResponse,
  passage: Passage,
  outcome: GateOutcome,
  first: string | HeadersInput | undefined,
  second: HeadersInput | undefined,
): OutgoingHttpHeaders {
  const given = typeof first === 'string' ? second : (first ?? second);
  const { headers, stripRateLimit } = passage.settle({
    header: (name) => headerOf(response, given, name),
    ...outcome,
  });
  if (stripRateLimit) for (const name of NUMBER_FIELD_NAMES) response.removeHeader(name);
  const replaced = stripRateLimit ? NUMBER_FIELD_NAMES : Object.keys(headers);
  return withFields(headers, replaced, Array.isArray(given) ? fromPairs(given) : given);
}

/** A field as the client will get it: one that is passed to `writeHead` wins. */
export function headerOf(response: ServerResponse, given: HeadersInput | undefined, name: string): string | undefined {
  const lower = name.toLowerCase();
  const all: OutgoingHttpHeaders = Array.isArray(given) ? fromPairs(given) : (given ?? {});
  const own = Object.keys(all).find((other) => other.toLowerCase() === lower);
  const value = own === undefined ? response.getHeader(lower) : all[own];
  return value === undefined ? undefined : String(value);
}

/**
 * Fields that a handler passes to `writeHead` win over those that were set before. So the gate's fields must replace
 * the handler's here.
 */
function withFields(
  gateFields: HeaderFields,
  replaced: readonly string[],
  given: OutgoingHttpHeaders = {},
): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = {};
  for (const name of Object.keys(given))
    if (replaced.length === 0 || !replaced.includes(name.toLowerCase())) all[name] = given[name];
  for (const name in gateFields) all[name] = gateFields[name];
  return all;
}

/**
 * Turns a flat list of names and values, or a list of pairs, into an object. A name that comes twice, in any case,
 * becomes a list.
 */
function fromPairs(given: readonly unknown[]): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = Object.create(null);
  const names = new Map<string, string>();
  forEachField(given.flat(1) as string[], (ownName, value, lowerName) => {
    const name = names.get(lowerName) ?? ownName;
    names.set(lowerName, name);
    const before = all[name];
    all[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [String(before)]), value];
  });
  return all;
}

/** The head of a response as the handler wrote it. */
export class AnswerHead {
  readonly status: number;
  readonly #reason: string;
  readonly #fields: readonly (readonly [string, number | string | string[]])[];

  constructor(response: ServerResponse) {
    this.status = response.statusCode;
    // HTTP/2 knows no reason, and reading one prints a warning.
    this.#reason = streamOf(response) ? '' : response.statusMessage;
    this.#fields = rawNames(response).map((name) => [name, response.getHeader(name) ?? '']);
  }

  /** Names and values in one flat list. */
  get fields(): string[] {
    return this.#fields.flatMap(([name, value]) => [value].flat().flatMap((one) => [name, String(one)]));
  }

  /** Sets this head again, whatever was set meanwhile. */
  restore(response: ServerResponse): void {
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    response.statusCode = this.status;
    if (!streamOf(response)) response.statusMessage = this.#reason;
    for (const [name, value] of this.#fields) response.setHeader(name, value);
  }
}

/**
 * Names in the case in which they were set. HTTP/2 uses only lower case. Node's types list this method for requests
 * only.
 */
function rawNames(response: ServerResponse & { getRawHeaderNames?(): string[] }): string[] {
  return response.getRawHeaderNames?.() ?? response.getHeaderNames();
}
