import { parseWindow } from 'headgate/internal';
import { z } from 'zod';
import { readableBy } from './values.ts';

const windowText = z
  .string()
  .check(readableBy(parseWindow))
  .meta({
    pattern: '^(0|[1-9]\\d*)( [a-z][a-z0-9_-]{0,31})?/[1-9]\\d*(ms|s|m|h|d)$',
    examples: ['60/1m', '30000 tokens/1m'],
  });

const windowObject = z.strictObject({
  max: z.int().min(0).describe('Largest number of requests, or of the unit, in the window. 0 rejects every request'),
  durationMs: z.int().min(1).describe('Length of the window in milliseconds'),
  unit: z
    .string()
    .check(readableBy((unit) => parseWindow({ max: 1, durationMs: 1, unit })))
    .optional()
    .describe(
      'What the window counts, such as tokens: `cost` of a route, or of a decision, names it. By default requests',
    ),
  name: z
    .string()
    .check(readableBy((name) => parseWindow({ max: 1, durationMs: 1, name })))
    .optional()
    .describe(
      'Name in the fields RateLimit-Policy and RateLimit. By default the limit, the unit and the duration: route-1m',
    ),
});

/** One limit. */
export const limit = z
  .array(z.union([windowText, windowObject], { error: 'must be "60/1m" or { "max": 60, "durationMs": 60000 }' }))
  .describe('A request must fit into all of these windows. [] means no such limit here');

const MOST_IN_FLIGHT = 1_000_000;

const inFlight = z
  .union([z.int().min(1).max(MOST_IN_FLIGHT), z.literal(false)], {
    error: `must be an integer from 1 to ${MOST_IN_FLIGHT}, or false`,
  })
  .optional();

const isLimit = {
  check: ({ windows, inFlight: most }: { windows?: unknown; inFlight?: unknown }): boolean =>
    windows !== undefined || most !== undefined,
  error: 'must have windows or inFlight',
};

const scopedLimit = z
  .strictObject({
    windows: limit.optional(),
    inFlight: inFlight.describe(
      'The most requests of an account at the same time, on all routes together. false removes the bound of less specific layers. By default their bound',
    ),
    scope: z
      .enum(['route', 'account'])
      .optional()
      .describe(
        'route: each route has its own count. account: the routes of an account share one count. By default the scope of the layer that this one replaces, and route in `default`',
      ),
  })
  .refine(isLimit.check, { error: isLimit.error });

/** A limit of a route. */
const routeLimit = z
  .strictObject({
    windows: limit.optional(),
    inFlight: inFlight.describe(
      'The most requests of an account to this route at the same time. false removes the bound of less specific layers. By default their bound',
    ),
  })
  .refine(isLimit.check, { error: isLimit.error });

const SHARED = '{ "allMethods": { "windows": ["60/1m"], "scope": "account" } }';

/** What to write in place of another type, such as the list of windows that the library takes. */
const suchAs =
  (example: string) =>
  ({ code }: z.core.$ZodRawIssue): string | undefined =>
    code === 'invalid_type' ? `must be an object, such as ${example}` : undefined;

const layerShape = {
  allMethods: z
    .union([limit, scopedLimit], {
      error: 'must be an array of windows, or { "windows": […], "scope": "account", "inFlight": 10 }',
    })
    .optional()
    .describe(
      'Applies to every limited route. Each route has its own count, unless the scope is "account" here or in the layer that this one replaces',
    ),
  routes: z
    .record(
      z.string(),
      z.union([limit, routeLimit], { error: 'must be an array of windows, or { "windows": […], "inFlight": 10 }' }),
    )
    .optional()
    .describe('Additional limits by route, as in { "POST /api/v1/emails": ["10/1m", "200/1d"] }'),
};
const layer = z.strictObject(layerShape, { error: suchAs(SHARED) });

/** The `limits` of the config. */
export const limits = z.strictObject(
  {
    recommended: z
      .boolean()
      .default(false)
      .describe("Starts each provider from headgate's recommended limits; `providers` overrides them by limit name"),
    unlimited: z
      .literal(true)
      .optional()
      .describe('Says that no request is limited. Without it, routes with an account need a window somewhere'),
    default: layer.default({}),
    plans: z.record(z.string(), layer).default({}),
    providers: z.record(z.string(), layer).default({}),
    accounts: z.record(z.string(), layer).default({}),
    groups: z
      .record(z.string(), layer)
      .default({})
      .describe(
        'Limits of groups, at most four, such as { "customer": { "allMethods": { "windows": ["1000/1h"], "scope": "account" } } }. A request must fit its account and each of its groups',
      ),
    lanes: z
      .record(z.string(), z.number().gt(0).max(1))
      .default({})
      .describe(
        'Lanes, and the share of each max that their requests may use, as in { "bulk": 0.9 }. The rest is left to requests without a lane',
      ),
  },
  { error: suchAs(`{ "default": ${SHARED} }`) },
);
