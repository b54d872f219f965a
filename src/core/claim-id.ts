import type { ClaimId } from './ports.ts';

/**
 * Returns the claim's identity as one string, for use as the key of a map. Two different pairs never give the same
 * string, because the length in front determines the end of the scope.
 */
export function claimName({ scope, key }: ClaimId): string {
  return `${scope.length}:${scope}${key}`;
}
