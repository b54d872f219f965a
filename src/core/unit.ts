/** The unit of a window that names none (S33). */
export const REQUESTS = 'requests';

/** A cost per unit: `{ requests: 1, tokens: 800 }`. A unit that is absent costs nothing. */
export type UnitCosts = Readonly<Record<string, number>>;

/** A number of requests, or a cost per unit. */
export type Cost = number | UnitCosts;

const UNIT = /^[a-z][a-z0-9_-]{0,31}$/;

export function isUnit(value: unknown): value is string {
  return typeof value === 'string' && UNIT.test(value);
}
