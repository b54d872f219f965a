/** The answer of the service. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The body as text. */
  readonly text: string;
  /** The body as JSON. Tests compare it, so it is not typed. */
  // biome-ignore lint/suspicious/noExplicitAny: each test reads other fields.
  readonly body: any;
}

export type Client = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<Answer>;

/** Makes requests with an API key. A body is sent as JSON. */
export const clientOf =
  (url: string, token: string | undefined): Client =>
  async (method, path, body, headers = {}) => {
    const answer = await fetch(url + path, {
      method,
      headers: {
        ...(token === undefined ? {} : { 'x-api-key': token }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, body: JSON.parse(text) };
  };

/** A time from now, as a client writes it. */
export const inDays = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();
