import { z } from 'zod';
import { routeIdempotency } from './idempotency.ts';
import { name } from './values.ts';

/** A route of the config. */
export const route = z.strictObject({
  route: z
    .string()
    .describe(
      'Method and path; {name} matches one segment, as in "GET /api/v1/chats/{chat_id}", and * at the end all that follows, as in "GET /files/*"',
    ),
  account: z
    .string()
    .regex(/^(path|query|header|body)\..+$/s, 'must be path.NAME, query.NAME, header.NAME or body.NAME')
    .optional()
    .describe(
      'Where requests give the account: path.NAME, query.NAME, header.NAME or body.NAME. Without it: not limited',
    ),
  idempotent: z.union([z.boolean(), routeIdempotency], { error: 'must be true, false or an object' }).optional(),
  upstream: name.optional().describe('Name of an upstream of upstreams, or default. It wins over that of the provider'),
});
