import { z } from 'zod';
import { digestOfToken } from '../token-digest.ts';
import { secret } from './secret.ts';

/** The secret of a credential, as a hash or as a text, and its end. */
export const tokenShape = (shortest: number) => ({
  sha256: secret(z.string().regex(/^[0-9a-fA-F]{64}$/, 'must be the 64 hexadecimal digits of the SHA-256 of a token'))
    .optional()
    .describe('SHA-256 of the token, in hexadecimal'),
  token: secret(
    z
      .string()
      .regex(
        new RegExp(`^[\\x21-\\x7e]{${shortest},1024}$`),
        `must be ${shortest} to 1,024 printable ASCII characters without spaces`,
      ),
  )
    .optional()
    .describe('The token itself, best as a reference. Only its hash stays in memory'),
  expiresAt: z.iso
    .datetime({ offset: true, error: 'must be a time in ISO 8601 with its offset, such as "2027-01-01T00:00:00Z"' })
    .optional()
    .describe('From this time on the token is refused. Without it the token never expires'),
});

/** A checked config contains the hash in place of the token, so that the token does not stay in memory. */
export function withDigest<Rest extends object>({
  sha256,
  token = '',
  ...rest
}: Rest & { readonly sha256?: string | undefined; readonly token?: string | undefined }) {
  return { ...rest, sha256: sha256 === undefined ? digestOfToken(token) : sha256.toLowerCase() };
}
