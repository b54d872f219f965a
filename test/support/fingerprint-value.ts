import type { IdempotentRequest } from '../../src/gate/index.ts';

/** The fingerprint for this account, of the result of an adapter's `idempotentRequest`. */
export async function fingerprintValue(request: unknown, account = 'a'): Promise<string> {
  const { fingerprint } = (request ?? {}) as Partial<IdempotentRequest>;
  if (fingerprint === undefined) throw new Error('the request has no key, or a malformed one');
  return (typeof fingerprint === 'function' ? await fingerprint(account) : fingerprint).value;
}
