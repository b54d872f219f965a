import { z } from 'zod';
import { countedWorkers, moment, named } from '../api/schemas.ts';
import { limit as limitSchema } from '../config/schema/limits.ts';

export const MAX_CHANGES = 100;

export const targetShape = {
  account: named('The limit of an account').optional(),
  provider: named('The limit of a provider').optional(),
  plan: named('The limit of a plan of customers').optional(),
  route: named('The limit of this route; otherwise the limit for all routes').optional(),
};
const windowTexts = z.array(z.string()).describe('Such as `60/1m`');
const target = z.object(targetShape);

const inFlight = z
  .union([z.int(), z.literal(false)])
  .nullable()
  .describe(
    'The most requests in flight, which only the config sets; false: it removes the bound of less specific layers; null: it leaves it to them',
  );
export const groupLimit = z.object({
  group: z.string(),
  limit: z.enum(['route', 'all-methods']),
  route: z.string().nullable().describe('null: all methods'),
  windows: windowTexts.nullable(),
  inFlight,
});
export type GroupLimit = z.output<typeof groupLimit>;
export const shown = z.object({
  target,
  limit: z.enum(['route', 'all-methods']),
  base: windowTexts.nullable().describe("The config's; null if it has none"),
  recommended: windowTexts.nullable().describe("Headgate's recommendation for the provider"),
  effective: windowTexts.nullable(),
  inFlight,
  adjusted: z
    .object({
      windows: windowTexts,
      version: z.int(),
      by: z.string(),
      reason: z.string().nullable(),
      at: moment,
      until: moment.nullable(),
    })
    .nullable()
    .describe('What an operator has set'),
});
export type Limit = z.output<typeof shown>;

const applied = z
  .object({ instances: z.int(), of: z.int(), missing: z.array(z.string()) })
  .describe('How many of the living processes obey the change');

export const previewed = z.object({
  changes: z.array(
    z.object({
      target,
      before: windowTexts.nullable(),
      after: windowTexts.nullable(),
      warnings: z.array(z.string()).describe('With one of them the change needs `confirm`'),
    }),
  ),
  accounts: z
    .object({ affected: z.int().describe('Accounts whose limits would become others') })
    .describe('Of the accounts that this gateway has seen in the last five to ten minutes'),
  workers: countedWorkers,
  now: z
    .array(
      z.object({
        account: z.string(),
        route: z.string().describe('That of its last request, or else of the change'),
        used: z.int().describe('What the fullest window of the changed limits has counted'),
        max: z.int().describe('What that window would allow'),
        wouldReject: z.boolean().describe('Whether the changed limits would reject the next request of cost 1'),
        perMinute: z
          .number()
          .describe(
            'Its requests per minute at this gateway, on all routes: the average of the last five to ten minutes',
          ),
        fullAfterMs: z
          .int()
          .nullable()
          .describe('At this rate, for how long the changed limits would have room in empty windows; null: always'),
      }),
    )
    .max(50)
    .describe('The affected accounts with the most requests: first those that would be rejected, then the fullest'),
});
export type LimitPreview = z.output<typeof previewed>;

export const changed = z.object({
  revision: z.string(),
  durable: z.boolean().describe('Whether the change outlives every process'),
  applied: applied.optional(),
});
export type LimitChanged = z.output<typeof changed>;

export const how = {
  dryRun: z.boolean().default(false).describe('Only says what would change'),
  wait: z.literal('applied').optional().describe('Waits until every process obeys, at most 2 seconds'),
};

/** The header fields that refuse a lost update. */
export const preconditions = z.strictObject({
  'If-Match': z
    .string()
    .regex(/^"\d{1,15}"$/, 'must be the etag of the limit, such as "17"')
    .optional()
    .describe(
      'The `etag` that the client has seen, `"0"` for a limit that is not adjusted. 412 if it is another one now',
    ),
  'If-None-Match': z
    .string()
    .regex(/^\*$/, 'must be *')
    .optional()
    .describe('`*`: 412 if the limit is adjusted. Not beside `If-Match`'),
});

export const windows = z.union([limitSchema, z.literal('recommended')], {
  error: 'must be an array of windows such as "60/1m", or "recommended"',
});
export const end = {
  forMs: z.int().min(1).optional().describe('How long it lasts. Without it and `until` it has no end'),
  until: z.iso
    .datetime({ offset: true, error: 'must be a time in ISO 8601 with its offset' })
    .optional()
    .describe('When it is over, in place of `forMs`'),
};
export const confirm = z.boolean().default(false).describe('Confirms the warnings of `dryRun`');

export const entry = z.object({
  version: z.int(),
  at: moment,
  by: z.string(),
  reason: z.string().nullable(),
  source: z.enum(['change', 'expiry']),
  changes: z.array(
    z.object({
      target,
      old: windowTexts.nullable().describe('The adjustment before; null: there was none'),
      new: windowTexts.nullable().describe('The adjustment after; null: it was reset'),
      until: moment.nullable().describe('When the adjustment after ends; null: never'),
    }),
  ),
});
export type LimitEntry = z.output<typeof entry>;
