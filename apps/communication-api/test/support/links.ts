import { expect } from 'vitest';
import { clientOf } from './client.ts';

const TEN_MINUTES_MS = 600_000;

/** Makes a link, for ten minutes. The given fields replace the fields of every link. */
export type MakeLink = (fields?: object) => Promise<string>;

/**
 * Makes links of an application.
 * @param fields of every link. The link of a reconnection lacks `providers`
 */
export function linkMaker(
  url: string,
  token: string,
  { providers, ...fields }: Readonly<Record<string, unknown>>,
): MakeLink {
  const call = clientOf(url, token);
  return async (own = {}) => {
    const expires_on = new Date(Date.now() + TEN_MINUTES_MS).toISOString();
    const offered = 'account_id' in own ? {} : { providers };
    const { status, body, text } = await call('POST', '/v2/auth/link', { expires_on, ...offered, ...fields, ...own });
    expect(status, text).toBe(200);
    return body.link;
  };
}
