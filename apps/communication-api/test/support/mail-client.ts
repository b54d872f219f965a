import { type ParsedMail, simpleParser } from 'mailparser';
import type { TestApplication, TestService } from './service.ts';

/** A part of a multipart body, to the byte. */
export interface Part {
  readonly name: string;
  readonly value: string | Uint8Array;
  readonly filename?: string;
  readonly type?: string;
}

/** An answer of the service, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The object that it is, if it is one. */
  readonly json: Readonly<Record<string, string>>;
}

/** Sends emails with one mock account, as a client would. */
export interface MailClient {
  readonly accountId: string;
  readonly token: string;
  /** Sends JSON with a value for each required field; `fields` may replace them. */
  json(fields?: object, key?: string, token?: string): Promise<Answer>;
  /** Sends a body as it is. */
  raw(type: string, body: string | Uint8Array, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Sends parts in their order. */
  form(parts: readonly Part[], key?: string, boundary?: string): Promise<Answer>;
  get(path: string, token?: string): Promise<Answer>;
  /** The fields of a request that is accepted. */
  readonly fields: { readonly account_id: string; readonly to: readonly object[]; readonly body: string };
  /** How many emails the mock delivered for this account. */
  delivered(): Promise<number>;
  /** The newest email that the mock delivered for this account, as its recipients read it, and its bytes. */
  newest(): Promise<{ readonly mail: ParsedMail; readonly raw: string; readonly recipients: readonly string[] }>;
}

export const part = (name: string, value: string | object): Part => ({
  name,
  value: typeof value === 'string' ? value : JSON.stringify(value),
});

/** A multipart body of parts. */
export function multipart(parts: readonly Part[], boundary = 'b1'): Buffer {
  const chunks = parts.flatMap(({ name, value, filename, type }) => [
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"`,
    filename === undefined ? '' : `; filename="${filename}"`,
    type === undefined ? '' : `\r\nContent-Type: ${type}`,
    '\r\n\r\n',
    value,
    '\r\n',
  ]);
  return Buffer.concat([...chunks, `--${boundary}--\r\n`].map((chunk) => Buffer.from(chunk as string)));
}

let accounts = 0;

/** A client with a new mock account, whose limits only this client uses. */
export async function mailClient(
  service: TestService,
  application: TestApplication,
  { drafts = true, scopeId = null }: { readonly drafts?: boolean; readonly scopeId?: string | null } = {},
): Promise<MailClient> {
  const name = `me${++accounts}@mock.test`;
  const account = await service.rooms.accounts.insert(application.id, {
    provider: 'mock',
    providerUserId: name,
    name,
    scopeId,
    secret: { credentials: { drafts } },
  });
  if (account === undefined) throw new Error('the account exists');
  const { id: accountId } = account;
  const fields = { account_id: accountId, to: [{ identifier: 'ann@example.com' }], body: 'Hello' };
  const url = `${service.url}/api/v1/emails`;
  const request = async (address: string, init: RequestInit): Promise<Answer> => {
    const response = await fetch(address, init);
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: text.startsWith('{') ? JSON.parse(text) : {},
    };
  };
  const raw: MailClient['raw'] = (type, body, headers = {}) =>
    request(url, {
      method: 'POST',
      headers: { 'x-api-key': application.token, 'content-type': type, ...headers },
      body: body as NonNullable<RequestInit['body']>,
    });
  const keyed = (key: string | undefined): Record<string, string> =>
    key === undefined ? {} : { 'idempotency-key': key };
  return {
    accountId,
    token: application.token,
    fields,
    raw,
    json: (given = {}, key, token = application.token) =>
      raw('application/json', JSON.stringify({ ...fields, ...given }), { ...keyed(key), 'x-api-key': token }),
    form: (parts, key, boundary = 'b1') =>
      raw(`multipart/form-data; boundary=${boundary}`, multipart(parts, boundary), keyed(key)),
    get: (path, token = application.token) => request(`${service.url}${path}`, { headers: { 'x-api-key': token } }),
    delivered: async () => {
      const rows = await service.db
        .selectFrom('mock_messages')
        .select('id')
        .where('account_id', '=', accountId)
        .execute();
      return rows.length;
    },
    newest: async () => {
      const row = await service.db
        .selectFrom('mock_messages')
        .selectAll()
        .where('account_id', '=', accountId)
        .orderBy('id', 'desc')
        .executeTakeFirstOrThrow();
      const bytes = Buffer.from(row.raw);
      return { mail: await simpleParser(bytes), raw: bytes.toString(), recipients: row.recipients };
    },
  };
}
