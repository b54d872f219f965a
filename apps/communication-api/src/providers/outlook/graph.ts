import type { Message } from '@microsoft/microsoft-graph-types';
import { readText } from '../../security/net.ts';
import { errorNameOf, parseAnswer, retryAfterOf } from '../answers.ts';
import type { OAuthClient } from '../oauth/client.ts';
import { AccessTokenRefused, withAccessToken } from '../oauth/tokens.ts';
import type { MailAccount } from '../provider.ts';

/** One request to Microsoft Graph. */
export interface GraphRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** After the address of Graph, with its query. */
  readonly path: string;
  /** JSON, or text of another type. */
  readonly body?: { readonly json: unknown } | { readonly mime: string } | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Graph answered with an error. */
export class GraphError extends Error {
  override readonly name = 'GraphError';
  /** Graph's own code, for example `ErrorItemNotFound`. Empty without a code. */
  readonly code: string;

  constructor(
    readonly status: number,
    code: unknown,
    /** In seconds, from Graph's answer. */
    readonly retryAfter: number | undefined,
  ) {
    const name = errorNameOf(code);
    super(`Graph answered ${status} ${name}`.trim());
    this.code = name;
  }
}

/** The fields of an email that are read. Graph's own type allows everything to be absent. */
export type GraphMessage = Pick<Message, 'id' | 'isDraft' | 'parentFolderId' | 'internetMessageId' | 'conversationId'> &
  Pick<Message, 'subject' | 'internetMessageHeaders'> & { readonly '@odata.etag'?: string };

/** Ids that stay the same when an email moves to another folder, as it does when it is sent. */
const IMMUTABLE_IDS = 'IdType="ImmutableId"';

/** The largest answer contains all headers of one email. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** Requests to Microsoft Graph with the access token of an account. */
export class Graph {
  constructor(
    readonly client: OAuthClient,
    private readonly apiUrl: string,
  ) {}

  /**
   * The JSON of the answer; undefined if the answer is empty.
   * @throws GraphError, ProviderError if there is no access token, or the error of `net.fetch`
   */
  async ask<Answer>(account: MailAccount, request: GraphRequest, signal: AbortSignal): Promise<Answer> {
    return withAccessToken(account, this.client, async (accessToken) => {
      const { method, path, body, headers } = request;
      const response = await account.net.fetch(this.apiUrl + path, {
        method,
        signal,
        headers: {
          authorization: `Bearer ${accessToken}`,
          prefer: IMMUTABLE_IDS,
          ...(body && { 'content-type': 'json' in body ? 'application/json' : 'text/plain' }),
          ...headers,
        },
        ...(body && { body: 'json' in body ? JSON.stringify(body.json) : body.mime }),
      });
      return readAnswer<Answer>(response);
    });
  }

  /** An email. Undefined if the id is unknown. */
  async message(
    account: MailAccount,
    id: string,
    properties: readonly (keyof GraphMessage)[],
    signal: AbortSignal,
  ): Promise<GraphMessage | undefined> {
    try {
      return await this.ask(account, { method: 'GET', path: `${messagePath(id)}?$select=${properties}` }, signal);
    } catch (error) {
      if (error instanceof GraphError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Sends a piece of a file to an address that Graph made for the file. The address needs no access token. */
  async upload(
    { net }: MailAccount,
    url: string,
    { bytes, start, size }: { readonly bytes: Uint8Array<ArrayBuffer>; readonly start: number; readonly size: number },
    signal: AbortSignal,
  ): Promise<void> {
    if (new URL(url).protocol !== new URL(this.apiUrl).protocol)
      throw new Error('Graph names an address for a file that is not safe.');
    const end = start + bytes.length - 1;
    const response = await net.fetch(url, {
      method: 'PUT',
      signal,
      headers: { 'content-type': 'application/octet-stream', 'content-range': `bytes ${start}-${end}/${size}` },
      body: bytes,
    });
    await readAnswer(response);
  }
}

export const messagePath = (id: string): string => `/me/messages/${encodeURIComponent(id)}`;

async function readAnswer<Answer>(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const text = await readText(response, MAX_ANSWER_BYTES);
  if (status >= 200 && status < 300) return text === '' ? (undefined as Answer) : parseAnswer<Answer>(text);
  if (status === 401) throw new AccessTokenRefused('Graph does not accept the access token.');
  throw new GraphError(status, codeOf(text), retryAfterOf(headers));
}

/** A proxy may answer with something else than Graph's JSON. */
function codeOf(text: string): unknown {
  try {
    return (JSON.parse(text) as { readonly error?: { readonly code?: unknown } }).error?.code;
  } catch {
    return undefined;
  }
}
