import { endSession, token } from '../session.ts';

/** The error object of the Admin API, or the reason why no answer came. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status; 0 without an answer. */
  readonly status: number;
  readonly requestId: string | undefined;
  /** Current version of the limit, if a change came too late. */
  readonly etag: string | undefined;

  constructor(status: number, detail: string, { requestId, etag }: { requestId?: string; etag?: string } = {}) {
    super(detail);
    this.status = status;
    this.requestId = requestId;
    this.etag = etag;
  }
}

/** Query parameters of a request. `undefined` is left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Asked {
  readonly query?: Query | undefined;
  /** Is sent as JSON. */
  readonly body?: unknown;
  /** The version that was seen. If another operator changed it since, the answer is an error 412. */
  readonly ifMatch?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/**
 * Asks the Admin API. `path` is relative to the page, so that a proxy may put the console into a folder.
 * @throws ApiError
 */
export async function ask<Answer>(method: Method, path: string, asked: Asked = {}): Promise<Answer> {
  const response = await open(method, path, asked);
  return (await response.json().catch(() => {
    if (asked.signal?.aborted) throw asked.signal.reason;
    throw new ApiError(0, 'The answer is not that of a gateway. A proxy in between may have sent it.');
  })) as Answer;
}

/**
 * Asks the Admin API, and returns as soon as the answer begins.
 * @throws ApiError
 */
export async function open(
  method: Method,
  path: string,
  { query = {}, body, ifMatch, signal }: Asked = {},
): Promise<Response> {
  const used = token.value;
  const headers: Record<string, string> = { authorization: `Bearer ${used}` };
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (ifMatch !== undefined) headers['if-match'] = ifMatch;
  const response = await fetch(withQuery(path, query), {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
    signal: signal ?? null,
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiError(0, 'The gateway did not answer. It may have stopped, or the network is away.');
  });
  if (response.ok) return response;
  const error = await errorOf(response);
  // An answer to an earlier token says nothing about this one.
  if (response.status === 401 && token.value === used) endSession(error.message);
  throw error;
}

function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

async function errorOf(response: Response): Promise<ApiError> {
  const { status, headers } = response;
  const problem = (await response.json().catch(() => ({}))) as { detail?: string; title?: string; req_id?: string };
  const requestId = problem.req_id ?? headers.get('x-request-id');
  const etag = headers.get('etag');
  return new ApiError(status, problem.detail ?? problem.title ?? `The gateway answered ${status}.`, {
    ...(requestId && { requestId }),
    ...(etag && { etag }),
  });
}
