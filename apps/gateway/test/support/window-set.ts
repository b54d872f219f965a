import { type LimitInput, parseLimit } from 'headgate';
import { type AllMethodsScope, createWindowSet, type WindowSet } from 'headgate/stores';

/** Creates a plan from limits as users write them. */
export function windowSetFrom(
  route: LimitInput,
  allMethods: LimitInput = [],
  scope: AllMethodsScope = 'route',
): WindowSet {
  return createWindowSet(parseLimit(route), parseLimit(allMethods), scope);
}
