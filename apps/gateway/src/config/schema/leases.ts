import { z } from 'zod';

const DEFAULT_LEASE_MS = 1_000;

/** `leases` of the config. */
export const leases = z
  .union(
    [
      z.boolean(),
      z.strictObject({
        leaseMs: z
          .int()
          .min(10)
          .max(60_000)
          .default(DEFAULT_LEASE_MS)
          .describe(
            'How long a lease lasts, in milliseconds. For up to this time, other processes may not see a block or a reset',
          ),
      }),
    ],
    { error: 'must be true, false or { "leaseMs": 1000 }' },
  )
  .transform((value) => (value === true ? { leaseMs: DEFAULT_LEASE_MS } : value));
