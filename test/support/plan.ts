import { type LimitInput, parseLimit } from '../../src/core/limit.ts';
import { type AllMethodsScope, createPlan, type Plan } from '../../src/core/plan.ts';

/** Creates a plan from limits as users write them. */
export function planFrom(route: LimitInput, allMethods: LimitInput = [], scope: AllMethodsScope = 'route'): Plan {
  return createPlan(parseLimit(route), parseLimit(allMethods), scope);
}
