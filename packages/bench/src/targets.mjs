import { verdict } from './statistics.mjs';
import { spread } from './table.mjs';

/**
 * A row of a topic's table of targets, as a list of one; an empty list if nothing was measured.
 * @param value a spread, which is judged by its rounds, or one number
 * @param target `{ wanted, isMet }`, for example from `atLeast`
 */
export function targetRow(what, value, { wanted, isMet }, show = spread) {
  if (value === undefined) return [];
  const result = typeof value === 'number' ? { met: isMet(value) } : verdict(value, isMet);
  return [{ what, measured: show(value), wanted, ...result }];
}

export const atLeast = (bound, text = bound) => ({ wanted: `≥ ${text}`, isMet: (value) => value >= bound });
export const atMost = (bound, text = bound) => ({ wanted: `≤ ${text}`, isMet: (value) => value <= bound });
