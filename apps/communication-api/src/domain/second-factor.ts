import type { Environment } from './key-token.ts';

/** For which work an organization requires a second factor. */
export const SECOND_FACTOR_FOR = ['nobody', 'production', 'everything'] as const;
export type SecondFactorFor = (typeof SECOND_FACTOR_FOR)[number];

/**
 * A part of the dashboard: the applications of an environment, the organization, what concerns only the member
 * (`own login`), and what is needed to set the second factor up (`set-up`).
 */
export type DashboardPart = Environment | 'organization' | 'own login' | 'set-up';

/** The parts that a member may use without a second factor. */
const WITHOUT: Readonly<Record<SecondFactorFor, readonly DashboardPart[]>> = {
  nobody: ['production', 'development', 'organization', 'own login', 'set-up'],
  // Who manages members or domains changes what production applications do.
  production: ['development', 'own login', 'set-up'],
  everything: ['set-up'],
};

export const requiresSecondFactor = (required: SecondFactorFor, part: DashboardPart): boolean =>
  !WITHOUT[required].includes(part);
