import { type LimitInput, parseLimit } from '../../src/core/limit.ts';
import { type AllMethodsScope, createWindowSet, type WindowSet } from '../../src/core/window-set.ts';

/** Creates a plan from limits as users write them. */
export function windowSetFrom(
  route: LimitInput,
  allMethods: LimitInput = [],
  scope: AllMethodsScope = 'route',
): WindowSet {
  return createWindowSet(parseLimit(route), parseLimit(allMethods), scope);
}
