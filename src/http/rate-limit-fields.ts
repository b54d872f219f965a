import type { Decision, WindowStatus } from '../core/decision.ts';
import { formatDuration } from '../core/duration.ts';

/** Which rate-limit fields an answer carries: the specification's, those of the IETF draft, both, or none. */
export type RateLimitFields = 'x-ratelimit' | 'ietf' | 'both' | 'none';

/** Header fields, names in lower case. */
export type HeaderFields = Readonly<Record<string, string>>;

/** Every field name that describes a limit of ours; taken off an answer that describes somebody else's (S16). */
export const RATE_LIMIT_FIELD_NAMES = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
] as const;

const NO_FIELDS: HeaderFields = /* @__PURE__ */ Object.freeze({});

/**
 * The header fields of a decision (S6 to S8): none where there is nothing to show, and none for a degraded one (S17).
 * `retry-after` stands on a rejection, whatever `fields` says of the others.
 */
export function rateLimitFields(decision: Decision, fields: RateLimitFields = 'x-ratelimit'): HeaderFields {
  const shown = decision.degraded ? undefined : decision.shown;
  if (shown === undefined) return NO_FIELDS;
  const reset = wholeSeconds(shown.resetMs);
  if (fields === 'x-ratelimit' && decision.accepted) {
    return {
      'x-ratelimit-limit': String(shown.max),
      'x-ratelimit-remaining': String(shown.remaining),
      'x-ratelimit-reset': reset,
    };
  }
  const result: Record<string, string> = {};
  if (fields === 'x-ratelimit' || fields === 'both') {
    result['x-ratelimit-limit'] = String(shown.max);
    result['x-ratelimit-remaining'] = String(shown.remaining);
    result['x-ratelimit-reset'] = reset;
  }
  if (fields === 'ietf' || fields === 'both') {
    result['ratelimit-policy'] = decision.trace.map(policy).join(', ');
    result.ratelimit = decision.trace.map(serviceLimit).join(', ');
  }
  if (!decision.accepted) result['retry-after'] = reset;
  return result;
}

/** Milliseconds to whole seconds, rounded up: waiting that long always gets past the window (S7). */
function wholeSeconds(ms: number): string {
  return String(Math.ceil(ms / 1_000));
}

/** `"route-1m";q=10;w=60` (draft-ietf-httpapi-ratelimit-headers-10, section 3). `w` has whole seconds only: rounded up. */
function policy(window: WindowStatus): string {
  return `${policyName(window)};q=${window.max};w=${wholeSeconds(window.durationMs)}`;
}

/** `"route-1m";r=9;t=60` (the same draft, section 4). */
function serviceLimit(window: WindowStatus): string {
  return `${policyName(window)};r=${window.remaining};t=${wholeSeconds(window.resetMs)}`;
}

/** A structured-field string; limit names and durations have no character that would need an escape. */
function policyName({ limit, durationMs }: WindowStatus): string {
  return `"${limit}-${formatDuration(durationMs)}"`;
}
