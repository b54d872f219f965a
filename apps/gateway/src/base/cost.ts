import type { Cost, UnitCosts } from 'headgate';
import { z } from 'zod';

/** The name of a unit. Which units there are, the limits of the config say. */
export const unit = z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, 'is not a unit, such as tokens');

/** More units than a config has. */
const MAX_UNITS = 20;
const count = (least: 0 | 1) => z.int().min(least);

const costFrom = (least: 0 | 1) =>
  z.union([
    count(least),
    z.record(unit, count(least)).refine((costs) => {
      const { length } = Object.keys(costs);
      return length > 0 && length <= MAX_UNITS;
    }, `must have 1 to ${MAX_UNITS} units`),
  ]);

/** A number of requests, or a cost per unit. */
export const cost = costFrom(1);
/** What a request cost in the end. */
export const finalCost = costFrom(0);

/** The cost in one unit; 0 if it is not named. */
export function costIn(given: Cost, unitName = 'requests'): number {
  if (typeof given === 'number') return unitName === 'requests' ? given : 0;
  return Object.hasOwn(given, unitName) ? (given[unitName] as number) : 0;
}

/** The cost per unit, as answers show it: absent if it is only of requests. */
export function unitsOf(costs: UnitCosts): { readonly costs?: UnitCosts } {
  return Object.keys(costs).every((name) => name === 'requests') ? {} : { costs };
}
