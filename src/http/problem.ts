import { OptionError } from '../base/errors.ts';
import type { ErrorStatus, ErrorType, ErrorTypesByStatus } from './error-types.ts';

/** The error object that every error answer carries; `Types` says which `type` belongs to which `status`. */
export type Problem<Types = ErrorTypesByStatus> = {
  [Status in keyof Types & number]: ProblemObject & { readonly status: Status; readonly type: Types[Status] };
}[keyof Types & number];

/** An error object of any type. */
export interface ProblemObject {
  readonly title: string;
  /** A sentence about this request, and advice for the client. */
  readonly detail?: string;
  readonly instance?: string;
  readonly type: string;
  /** Equals the HTTP status. */
  readonly status: number;
  /** The request's id, as in `x-request-id` and in the log. */
  readonly req_id?: string;
}

/** A whole HTTP answer, which an adapter sends as it is. */
export interface Reply {
  readonly status: number;
  /** By name; a list if the field occurs more than once. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string | Uint8Array;
}

/** Media type of error answers: plain JSON, or that of RFC 9457. */
export type ProblemMediaType = 'application/json' | 'application/problem+json';

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad request',
  401: 'Unauthorized',
  402: 'Payment required',
  403: 'Forbidden',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Request timeout',
  409: 'Conflict',
  410: 'Gone',
  412: 'Precondition failed',
  413: 'Payload too large',
  415: 'Unsupported media type',
  422: 'Unprocessable entity',
  429: 'Too many requests',
  431: 'Request header fields too large',
  500: 'Unexpected error',
  501: 'Not implemented',
  502: 'Bad gateway',
  503: 'Service unavailable',
  504: 'Request timeout',
};

type ProblemArguments<Types> = {
  [Status in keyof Types & number]: [status: Status, type: Types[Status], detail?: string, requestId?: string];
}[keyof Types & number];

/**
 * Makes an error object. `type` must fit the `status`: of headgate's own types, or of the table that you
 * name as the type parameter (see `WithErrorTypes`). A status without a title of its own gets a general one.
 */
export function createProblem<Status extends ErrorStatus>(
  status: Status,
  type: ErrorType<Status>,
  detail?: string,
  requestId?: string,
): Problem;
export function createProblem<Types = ErrorTypesByStatus>(...problem: ProblemArguments<Types>): Problem<Types>;
export function createProblem(status: number, type: string, detail?: string, requestId?: string): ProblemObject {
  return {
    title: TITLES[status] ?? (status < 500 ? 'Request failed' : 'Unexpected error'),
    ...(detail === undefined ? {} : { detail }),
    type,
    status,
    ...(requestId === undefined ? {} : { req_id: requestId }),
  };
}

/**
 * An HTTP answer with a JSON body.
 * @param headers names in lower case; added to `content-type` and `content-length`, and win over them
 * @throws OptionError if JSON cannot express the value at all, as with undefined; TypeError if it contains itself
 * @example
 * ```ts
 * answer: ({ status, detail }) => jsonReply(status, { error: detail }),
 * ```
 */
export function jsonReply(
  status: number,
  value: unknown,
  headers: Reply['headers'] = {},
): Reply & { readonly body: string } {
  const body: string | undefined = JSON.stringify(value);
  if (body === undefined) throw new OptionError('value', value, 'must be a value that JSON can express');
  return {
    status,
    headers: { 'content-type': 'application/json', 'content-length': lengthOf(body), ...headers },
    body,
  };
}

/** The HTTP answer that carries an error object; `headers` are added to its own, and win over them. */
export function problemReply(
  problem: ProblemObject,
  headers: Reply['headers'] = {},
  mediaType: ProblemMediaType = 'application/json',
): Reply & { readonly body: string } {
  const body = JSON.stringify(problem);
  return {
    status: problem.status,
    headers: {
      'content-type': mediaType,
      'content-length': lengthOf(body),
      'cache-control': 'no-store',
      ...headers,
    },
    body,
  };
}

const NOT_ASCII = /[^\0-\x7f]/;

function lengthOf(body: string): string {
  return String(NOT_ASCII.test(body) ? new TextEncoder().encode(body).length : body.length);
}

/** Whether a response with this status, from 200 on, says how long its body is. */
export function hasLength(status: number): boolean {
  return status !== 204 && status !== 304;
}
