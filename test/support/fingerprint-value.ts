import type { IdempotentRequest } from '../../src/index.ts';

/** What makes two requests the same, for this account; of what `idempotentRequest` of an adapter found. */
export async function fingerprintValue(found: unknown, account = 'a'): Promise<string> {
  const { fingerprint } = (found ?? {}) as Partial<IdempotentRequest>;
  if (fingerprint === undefined) throw new Error('no key, or a fault');
  return (typeof fingerprint === 'function' ? await fingerprint(account) : fingerprint).value;
}
