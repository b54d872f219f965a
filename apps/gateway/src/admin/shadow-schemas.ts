import { z } from 'zod';
import { countedWorkers, moment } from '../api/schemas.ts';
import { limits } from '../config/schema/limits.ts';
import { targetShape } from './limit-schemas.ts';

const count = z.int().min(0);

export const shadowCounts = z.object({
  both: count.describe('Requests that both reject'),
  none: count.describe('Requests that both accept'),
  onlyCandidate: count.describe('Requests that only the candidate rejects'),
  onlyCurrent: count.describe('Requests that only the limits in force reject'),
  dropped: count.describe('Requests that were not checked, because 1,000 checks were under way'),
  failed: count.describe("Checks without an answer of the candidate's store in time"),
});

const candidate = z.object({
  source: z.enum(['config', 'operator']),
  limits: limits.describe('As `limits` of the config'),
  sample: z.number().describe('Part of the accounts whose requests are checked'),
  store: z.enum(['same', 'memory']),
  by: z.string().nullable(),
  reason: z.string().nullable(),
  at: moment.nullable(),
});

const figures = z
  .object({
    since: moment.describe('Since when this gateway runs the candidate'),
    counters: z.enum(['shared', 'process']).describe('Whether all processes count together, or each by itself'),
    total: shadowCounts,
    routes: z.array(shadowCounts.extend({ route: z.string() })),
    accounts: z
      .array(
        z.object({
          account: z.string(),
          route: z.string().describe('That of the last such request'),
          limit: z.enum(['route', 'all-methods']).describe('The limit that would have rejected it'),
          rejected: z.int().describe('Requests that only the candidate rejects'),
        }),
      )
      .max(1_000)
      .describe('Those that only the candidate rejects, the most rejected first'),
    unlisted: z.int().describe('Such requests of further accounts'),
    workers: countedWorkers,
  })
  .describe('Of this gateway');

const promotion = z.object({
  changes: z
    .array(
      z.object({
        target: z.object(targetShape),
        before: z.array(z.string()).nullable().describe('What applies now; null if there is no such limit'),
        windows: z.array(z.string()).nullable().describe('What the candidate has; null resets an adjustment'),
        version: z.int().describe('That of the adjustment of now'),
      }),
    )
    .describe('What makes the candidate the limits in force, for `changes` of a batch'),
  left: z.int().describe('How many more changes there are'),
  obstacles: z.array(z.string()).describe('What adjustments cannot express'),
});

export const shadowState = z.object({
  candidate: candidate.nullable(),
  durable: z.boolean().describe('Whether the candidate of an operator outlives every process'),
  figures: figures.nullable(),
  fleet: z
    .object({ processes: z.object({ counted: z.int(), of: z.int() }), total: shadowCounts })
    .nullable()
    .optional()
    .describe('With `fleet`: the sum of the processes that run the same candidate'),
  promotion: promotion.nullable(),
});

export type ShadowState = z.output<typeof shadowState>;
