import { z } from 'zod';
import { tokenShape, withDigest } from './token.ts';
import { name } from './values.ts';

const { sha256, token, expiresAt } = tokenShape(1);

const keyAsWritten = z.strictObject({
  sha256,
  token,
  application: name.describe('Application that the key belongs to. The key reaches only accounts of this application'),
  role: z.enum(['service', 'account', 'scoped']).default('account'),
  scope: name.nullable().default(null).describe('The one scope of a scoped key'),
  expiresAt: expiresAt.describe('From this time on the key is refused. Without it the key never expires'),
});

export const key = keyAsWritten.transform(withDigest);
