import type { ErrorStatus, ErrorType } from './error-types.ts';

/** The error object (seed, section 7). */
export interface Problem<Status extends ErrorStatus = ErrorStatus> {
  readonly title: string;
  /** What happened to this request and what to do about it. */
  readonly detail?: string;
  readonly instance?: string;
  readonly type: ErrorType<Status>;
  /** Equals the HTTP status. */
  readonly status: Status;
  /** The request's id, as in `x-request-id` and in the log. */
  readonly req_id?: string;
}

/** A whole HTTP answer: what an adapter sends as it is. */
export interface Reply {
  readonly status: number;
  /** By name; a list where the field comes more than once. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string | Uint8Array;
}

/** Media type of error answers: the specification's, or that of RFC 9457. */
export type ProblemMediaType = 'application/json' | 'application/problem+json';

const TITLES: Readonly<Record<ErrorStatus, string>> = {
  400: 'Bad request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not found',
  408: 'Request timeout',
  409: 'Conflict',
  413: 'Payload too large',
  422: 'Unprocessable entity',
  429: 'Too many requests',
  431: 'Request header fields too large',
  500: 'Unexpected error',
  503: 'Service unavailable',
  504: 'Request timeout',
};

/** Makes an error object; `type` must be one that `status` may have. */
export function createProblem<Status extends ErrorStatus>(
  status: Status,
  type: ErrorType<Status>,
  detail?: string,
  requestId?: string,
): Problem<Status> {
  return {
    title: TITLES[status],
    ...(detail === undefined ? {} : { detail }),
    type,
    status,
    ...(requestId === undefined ? {} : { req_id: requestId }),
  };
}

/** The answer that carries an error object, with `headers` beside its own. */
export function problemReply(
  problem: Problem,
  headers: Reply['headers'] = {},
  mediaType: ProblemMediaType = 'application/json',
): Reply & { readonly body: string } {
  const body = JSON.stringify(problem);
  return {
    status: problem.status,
    headers: {
      'content-type': mediaType,
      'content-length': String(new TextEncoder().encode(body).length),
      'cache-control': 'no-store',
      ...headers,
    },
    body,
  };
}
