import { OptionError } from '../base/errors.ts';
import type { InFlight } from '../core/slot.ts';

/** How many requests may be in flight, beside the windows of a limit. */
export interface InFlightInput {
  /**
   * The most requests at the same time (S29), from 1 to 1,000,000: of All methods those of all routes of an account
   * together, whatever the scope of its windows; of a route its own. False removes the bound of less specific layers.
   * @default the bound of the less specific layer; none if that has none
   */
  readonly inFlight?: number | false | undefined;
}

const MOST = 1_000_000;

/** @throws OptionError */
export function checkInFlight(given: unknown, place: string): number | false {
  if (given === false || (Number.isSafeInteger(given) && (given as number) >= 1 && (given as number) <= MOST))
    return given as number | false;
  throw new OptionError(place, given, `must be an integer from 1 to ${MOST}, or false`);
}

/** Whether any bound matches. */
export function hasInFlight(
  bounds: ReadonlyMap<string | undefined, number | false> | undefined,
  matches: (route: string | undefined, most: number | false) => boolean,
): boolean {
  return bounds !== undefined && [...bounds].some(([route, most]) => matches(route, most));
}

/** The bounds of a window set; undefined if there is none. */
export function mostInFlight(
  route: number | false | undefined,
  allMethods: number | false | undefined,
): InFlight | undefined {
  const most = { route: route || undefined, allMethods: allMethods || undefined };
  return most.route === undefined && most.allMethods === undefined ? undefined : Object.freeze(most);
}
