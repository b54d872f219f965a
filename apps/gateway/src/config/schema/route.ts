import { z } from 'zod';
import { cost, unit } from '../../base/cost.ts';
import { HEADER_NAME } from '../account-source.ts';
import { routeIdempotency } from './idempotency.ts';
import { groups, name } from './values.ts';

const ACCOUNT = /^(key|application|address|none|(path|query|header|body)\..+)$/s;
const FORMS = 'must be key, application, address or none, or path.NAME, query.NAME, header.NAME or body.NAME';

/** A route of the config. */
export const route = z.strictObject({
  route: z
    .string()
    .describe(
      'Method and path; {name} matches one segment, as in "GET /api/v1/chats/{chat_id}", and * at the end all that follows, as in "GET /files/*"',
    ),
  account: z
    .string()
    .regex(ACCOUNT, FORMS)
    .optional()
    .describe(
      'By what requests are counted: key (the API key), application, address (of the client), or where requests name the account: path.NAME, query.NAME, header.NAME or body.NAME. none: not limited. Without it: address for a public route; key if no route that needs a key has an account; else not limited',
    ),
  public: z
    .boolean()
    .default(false)
    .describe('Whether its requests need no API key. It counts by address or not at all, and is not idempotent'),
  idempotent: z.union([z.boolean(), routeIdempotency], { error: 'must be true, false or an object' }).optional(),
  cost: cost
    .optional()
    .describe(
      'What a request costs: a number of requests, or a cost per unit of the limits, such as { "requests": 1, "tokens": 800 }. By default 1 request',
    ),
  finalCost: z
    .record(unit, z.string().regex(HEADER_NAME, 'is not a header name'))
    .optional()
    .describe(
      'Fields of the upstream\'s response with the final cost, by units of `cost`, such as { "tokens": "x-tokens-used" }. Without a whole number in the field, the charge stays',
    ),
  lane: name
    .optional()
    .describe(
      'A lane of limits.lanes: its requests may use only the share of that lane. If the key has a lane too, the smaller share applies',
    ),
  groups: groups
    .optional()
    .describe(
      'Groups of limits.groups for which its requests count, such as { "upstream": "mail" }: an id by name. Those of the key and of the account win',
    ),
  upstream: name.optional().describe('Name of an upstream of upstreams, or default. It wins over that of the provider'),
});
