import { z } from 'zod';
import { name } from './values.ts';

const entry = z.strictObject({
  key: name.describe('Key of the entry'),
  value: name.optional().describe('Only this value. Without it any value, which `account` can name as {KEY}'),
});

const descriptor = z.strictObject({
  entries: z.array(entry).min(1).describe('The entries of the descriptor, in its order: all of them, and no other'),
  route: name.describe('A limited route of the config, whose limits apply'),
  account: name.describe(
    'By what it is counted, as the route does: the id of an account, or the name of a key, an application or an address. {KEY} is the value of an entry',
  ),
  shadow: z.boolean().default(false).describe('Whether a rejection is only counted, and answered with OK'),
});

/** The `rateLimitService` of the config. */
export const rateLimitService = z.strictObject({
  host: name.default('127.0.0.1').describe('Address to listen on'),
  port: z.int().min(0).max(65_535).default(8083).describe('0 takes any free port; the log has its number'),
  insecure: z
    .boolean()
    .default(false)
    .describe('Whether it may listen where other machines can reach it. Its callers need no key and no certificate'),
  domains: z
    .record(z.string(), z.array(descriptor).min(1))
    .describe('Descriptors by domain. The first that matches decides; a descriptor that none matches is not limited'),
});
