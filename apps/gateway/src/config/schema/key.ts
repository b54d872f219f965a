import { z } from 'zod';
import { keyName } from '../token-digest.ts';
import { tokenShape, withDigest } from './token.ts';
import { groups, name } from './values.ts';

const { sha256, token, expiresAt } = tokenShape(1);

const keyAsWritten = z.strictObject({
  sha256,
  token,
  application: name.describe('Application that the key belongs to. The key reaches only accounts of this application'),
  name: name
    .optional()
    .describe('Names the account key:NAME of the key. Without it, the first 12 digits of its SHA-256 do'),
  plan: name
    .optional()
    .describe('What the customer pays for: selects one of limits.plans for routes that count by key or application'),
  lane: name
    .optional()
    .describe(
      'A lane of limits.lanes: requests with the key may use only the share of that lane. If the route has a lane too, the smaller share applies',
    ),
  groups: groups
    .optional()
    .describe('Groups of limits.groups for which requests with the key count: an id by name. Those of the account win'),
  role: z.enum(['service', 'account', 'scoped']).default('account'),
  scope: name.nullable().default(null).describe('The one scope of a scoped key'),
  expiresAt: expiresAt.describe('From this time on the key is refused. Without it the key never expires'),
});

export const key = keyAsWritten.transform((written) => {
  const checked = withDigest(written);
  return { ...checked, name: checked.name ?? keyName(checked.sha256) };
});
