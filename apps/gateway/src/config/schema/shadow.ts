import { z } from 'zod';
import { limits } from './limits.ts';

/** The `shadow` of the config, and the body of the request that starts a candidate at run time. */
export const shadow = z.strictObject({
  limits: limits.describe('The candidate, as `limits`'),
  sample: z
    .number()
    .gt(0)
    .max(1)
    .default(1)
    .describe('Part of the accounts whose requests are checked, the same accounts in every process'),
  store: z
    .enum(['same', 'memory'])
    .default('same')
    .describe('same: the candidate counts in the store of the config, under keys of its own. memory: in each process'),
});
