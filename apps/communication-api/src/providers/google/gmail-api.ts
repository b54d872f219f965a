import type { Clock } from '../../domain/clock.ts';
import { readText } from '../../security/net.ts';
import { parseAnswer } from '../answers.ts';
import { networkError } from '../network-error.ts';
import type { OAuthClient } from '../oauth/client.ts';
import { AccessTokenRefused, withAccessToken } from '../oauth/tokens.ts';
import { type MailAccount, ProviderError, type Sent } from '../provider.ts';
import { gmailError } from './gmail-error.ts';

/** The users' name for the provider. */
export const TITLE = 'Google';

/** A conversation with a thousand emails, of which only some headers are asked for. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** Access to Gmail with a token. */
export interface Access {
  readonly net: MailAccount['net'];
  readonly accessToken: string;
}

/** One request to Gmail. */
export interface GmailCall {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below `/gmail/v1/users/me/`. */
  readonly path: string;
  readonly query?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly json?: unknown;
  /** Goes to the address for uploads. Made anew for each attempt. */
  readonly upload?: (() => { readonly contentType: string; readonly body: ReadableStream }) | undefined;
  /** Whether the email was sent if Gmail does not answer, or answers with an error of its server. Default: not sent. */
  readonly sentWithoutAnswer?: (() => Sent) | undefined;
  readonly signal: AbortSignal;
}

/** The Gmail API. */
export class GmailApi {
  constructor(
    /** Its origin. */
    private readonly url: string,
    private readonly client: OAuthClient,
    private readonly clock: Clock,
  ) {}

  /**
   * Calls Gmail for an account.
   * @returns the answer. Undefined: the object that the path names does not exist
   * @throws ProviderError
   */
  call<Answer>(account: MailAccount, call: GmailCall): Promise<Answer | undefined> {
    return withAccessToken(account, this.client, (accessToken) =>
      this.request({ net: account.net, accessToken }, call),
    );
  }

  /** Calls Gmail with a token. @throws ProviderError, or AccessTokenRefused */
  async request<Answer>(access: Access, call: GmailCall): Promise<Answer | undefined> {
    const { sentWithoutAnswer = () => 'no' } = call;
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(access, call);
      text = await readText(response, MAX_ANSWER_BYTES);
    } catch (error) {
      throw networkError(TITLE, error, sentWithoutAnswer());
    }
    if (response.status === 401) throw new AccessTokenRefused();
    if (response.status === 404) return undefined;
    if (!response.ok) throw gmailError(response, text, sentWithoutAnswer(), this.clock());
    if (text === '') return {} as Answer;
    try {
      return parseAnswer<Answer>(text);
    } catch (cause) {
      throw new ProviderError(sentWithoutAnswer(), 500, 'errors/provider_error', 'Google’s answer cannot be read.', {
        cause,
      });
    }
  }

  #fetch({ net, accessToken }: Access, { method, path, query = [], json, upload, signal }: GmailCall) {
    const url = new URL(`${upload === undefined ? '' : '/upload'}/gmail/v1/users/me/${path}`, this.url);
    for (const [name, value] of query) url.searchParams.append(name, value);
    const authorization = `Bearer ${accessToken}`;
    if (upload !== undefined) {
      url.searchParams.set('uploadType', 'multipart');
      const { contentType, body } = upload();
      const headers = { authorization, 'content-type': contentType };
      // Without `duplex`, fetch does not send a stream.
      return net.fetch(url, { method, headers, body, duplex: 'half', signal } as RequestInit);
    }
    if (json === undefined) return net.fetch(url, { method, headers: { authorization }, signal });
    const headers = { authorization, 'content-type': 'application/json' };
    return net.fetch(url, { method, headers, body: JSON.stringify(json), signal });
  }
}
