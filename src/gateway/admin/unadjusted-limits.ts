import { createSharedLimits } from '../../limits/shared/create-shared-limits.ts';
import type { SharedLimits } from '../../limits/shared/shared-limits.ts';
import { createMemoryAdjustments } from '../../stores/memory/adjustments.ts';
import { limitsOf } from '../config/limits.ts';
import type { Config } from '../config/schema.ts';

/** The limits of a config that does not let them be adjusted, so that the Admin API can explain them all the same. */
export function createUnadjustedLimits(config: Config): SharedLimits {
  return createSharedLimits({ base: limitsOf(config), adjustments: createMemoryAdjustments(), logger: false });
}
