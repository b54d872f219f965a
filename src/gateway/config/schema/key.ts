import { z } from 'zod';
import { digestOfToken } from '../token-digest.ts';
import { secret } from './secret.ts';
import { name } from './values.ts';

const keyAsWritten = z.strictObject({
  sha256: secret(z.string().regex(/^[0-9a-fA-F]{64}$/, 'must be the 64 hexadecimal digits of the SHA-256 of a token'))
    .optional()
    .describe('SHA-256 of the token, in hexadecimal'),
  token: secret(
    z.string().regex(/^[\x21-\x7e]{1,1024}$/, 'must be 1 to 1,024 printable ASCII characters without spaces'),
  )
    .optional()
    .describe('The token itself, best as a reference. Only its hash stays in memory'),
  application: name.describe('Application that the key belongs to. The key reaches only accounts of this application'),
  role: z.enum(['service', 'account', 'scoped']).default('account'),
  scope: name.nullable().default(null).describe('The one scope of a scoped key'),
  expiresAt: z.iso
    .datetime({ offset: true, error: 'must be a time in ISO 8601 with its offset, such as "2027-01-01T00:00:00Z"' })
    .optional()
    .describe('From this time on the key is refused. Without it the key never expires'),
});

/** A checked config has the hash in place of the token, so that the token does not stay in memory. */
export const key = keyAsWritten.transform(({ sha256, token = '', ...rest }) => ({
  ...rest,
  sha256: sha256 === undefined ? digestOfToken(token) : sha256.toLowerCase(),
}));
