import { builtinModule } from '../base/builtin-module.ts';

/** How spans name the account. */
export type AccountForm = 'none' | 'hash' | 'plain';

export const ACCOUNT_FORMS: readonly AccountForm[] = ['none', 'hash', 'plain'];

interface Crypto {
  createHash(name: 'sha256'): { update(text: string): { digest(encoding: 'hex'): string } };
}

const HASH_DIGITS = 16;

/** Returns what spans have for an account; undefined for nothing. */
export function accountWriter(form: AccountForm): (account: string) => string | undefined {
  if (form === 'none') return () => undefined;
  if (form === 'plain') return (account) => account;
  const crypto = builtinModule<Crypto>('node:crypto');
  return (account) => crypto?.createHash('sha256').update(account).digest('hex').slice(0, HASH_DIGITS);
}
