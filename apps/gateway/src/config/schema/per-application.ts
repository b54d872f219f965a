import { z } from 'zod';

/** The most that one application can take, so that it cannot starve the others. */
export const perApplication = z.strictObject({
  maxRequests: z.int().min(1).default(1_000).describe('Most requests that run at a time'),
  maxBufferedBytes: z.int().min(0).default(268_435_456).describe('Its share of maxBufferedBytes'),
  maxUpstreamConnections: z
    .int()
    .min(1)
    .optional()
    .describe('Its share of maxUpstreamConnections. Default: half of them'),
  maxClaims: z
    .int()
    .min(1)
    .max(16_000_000)
    .optional()
    .describe(
      'Most idempotency keys. Default: in memory an equal share of 100,000, or 10,000 if that is more; in Redis and PostgreSQL 1,000,000 per process',
    ),
  maxLargeBytes: z
    .int()
    .min(0)
    .default(8_388_608)
    .describe(
      'Answers of more than 8 KiB that wait for Redis or PostgreSQL, or are on their way, in bytes. One always fits',
    ),
  maxRefusedWorkMs: z
    .int()
    .min(1)
    .max(60_000)
    .default(2_000)
    .describe('Longest work per minute on bodies of requests that are then not forwarded, in milliseconds'),
});
