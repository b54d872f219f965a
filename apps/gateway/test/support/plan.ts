import { type LimitInput, parseLimit } from 'headgate';
import { type AllMethodsScope, createPlan, type Plan } from 'headgate/stores';

/** Creates a plan from limits as users write them. */
export function planFrom(route: LimitInput, allMethods: LimitInput = [], scope: AllMethodsScope = 'route'): Plan {
  return createPlan(parseLimit(route), parseLimit(allMethods), scope);
}
