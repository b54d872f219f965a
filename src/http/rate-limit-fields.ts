import { OptionError } from '../base/errors.ts';
import { getOrCreate } from '../base/get-or-create.ts';
import type { Decision, WindowStatus } from '../core/decision.ts';
import { formatDuration } from '../core/duration.ts';
import type { WindowSet } from '../core/window-set.ts';
import { base64 } from './platform.ts';

/** Header fields, names in lower case. */
export type HeaderFields = Readonly<Record<string, string>>;

type FieldWriter = (
  fields: Record<string, string>,
  decision: Decision,
  shown: WindowStatus,
  reset: string,
  partitionKey: string | undefined,
) => void;

/** A set of rate-limit fields: `x-ratelimit-*`, or `RateLimit` and `RateLimit-Policy` of the IETF draft. */
export type RateLimitStyle = 'x-ratelimit' | 'ietf';

/** The names of the windows of a window set, as structured-field strings. */
const POLICY_NAMES = /* @__PURE__ */ new WeakMap<WindowSet, readonly string[]>();

/**
 * How each style writes a decision. `reset` is the time until the shown window ends, in whole seconds. The names of a
 * style's fields must also be in {@link NUMBER_FIELD_NAMES}: otherwise they would stay on a provider's own 429
 * (S16).
 */
const STYLES: Readonly<Record<RateLimitStyle, FieldWriter>> = {
  'x-ratelimit': (fields, _, shown, reset) => {
    fields['x-ratelimit-limit'] = String(shown.max);
    fields['x-ratelimit-remaining'] = String(shown.remaining);
    fields['x-ratelimit-reset'] = reset;
  },
  // draft-ietf-httpapi-ratelimit-headers-10
  ietf: (fields, { trace, windowSet }, _shown, _reset, partitionKey) => {
    const names = getOrCreate(POLICY_NAMES, windowSet, () => policyNames(windowSet));
    const pk = partitionKey === undefined ? '' : `;pk=:${base64(new TextEncoder().encode(partitionKey))}:`;
    // The counts of a group belong to more than the account.
    const keyOf = (group: string | undefined): string => (group === undefined ? pk : '');
    // `w` and `t` count whole seconds, so they are rounded up.
    fields['ratelimit-policy'] = trace
      .map(({ max, durationMs, unit, group }, at) => {
        const qu = unit === undefined ? '' : `;qu="${unit}"`;
        return `${names[at]};q=${max}${qu};w=${wholeSeconds(durationMs)}${keyOf(group)}`;
      })
      .join(', ');
    fields.ratelimit = trace
      .map(
        ({ remaining, resetMs, group }, at) => `${names[at]};r=${remaining};t=${wholeSeconds(resetMs)}${keyOf(group)}`,
      )
      .join(', ');
  },
};

/** Which rate-limit fields an answer carries: a list of styles, or one of them alone; `[]` for none. */
export type RateLimitFields = RateLimitStyle | readonly RateLimitStyle[];

/** Every style, for checks and messages. */
export const RATE_LIMIT_STYLES = /* @__PURE__ */ Object.keys(STYLES) as readonly RateLimitStyle[];

/**
 * The fields that a client would take for our numbers. They are removed from a provider's own 429, which keeps its
 * `retry-after` (S16).
 */
export const NUMBER_FIELD_NAMES = [
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit',
  'ratelimit-policy',
] as const;

/** Every field name that describes our limits. */
export const RATE_LIMIT_FIELD_NAMES = [...NUMBER_FIELD_NAMES, 'retry-after'] as const;

const NO_FIELDS: HeaderFields = /* @__PURE__ */ Object.freeze({});

/**
 * The header fields of a decision (S6 to S8): none if no window is shown, and none if it is degraded (S17). Any
 * other rejection has `retry-after`, whatever the styles, unless waiting does not help (S11). For a block, it is the
 * only field (S21).
 * @param partitionKey what the counts belong to, such as a digest of the account: the parameter `pk` of `'ietf'`
 * @throws OptionError for an unknown style
 */
export function rateLimitFields(
  decision: Decision,
  styles: RateLimitFields = 'x-ratelimit',
  partitionKey?: string,
): HeaderFields {
  const shown = decision.degraded ? undefined : decision.shown;
  if (shown === undefined) {
    const { blocked, degraded } = decision;
    return blocked === undefined || degraded ? NO_FIELDS : { 'retry-after': wholeSeconds(blocked.forMs) };
  }
  const reset = wholeSeconds(shown.resetMs);
  const only = typeof styles === 'string' || styles.length !== 1 ? styles : styles[0];
  if (only === 'x-ratelimit' && decision.accepted) {
    // The usual case, in one step: setting fields one by one costs more than the decision.
    return {
      'x-ratelimit-limit': String(shown.max),
      'x-ratelimit-remaining': String(shown.remaining),
      'x-ratelimit-reset': reset,
    };
  }
  const fields: Record<string, string> = {};
  for (const style of rateLimitStyles(styles)) STYLES[style](fields, decision, shown, reset, partitionKey);
  if (!(decision.accepted || decision.impossible)) fields['retry-after'] = reset;
  return fields;
}

/**
 * The styles as a list, checked.
 * @param place name of the value in the error
 * @throws OptionError
 */
export function rateLimitStyles(given: unknown, place = 'headers'): readonly RateLimitStyle[] {
  const styles: readonly unknown[] = Array.isArray(given) ? given : [given];
  for (const style of styles) {
    if (typeof style === 'string' && Object.hasOwn(STYLES, style)) continue;
    const known = RATE_LIMIT_STYLES.map((name) => JSON.stringify(name)).join(', ');
    throw new OptionError(place, style, `must be a list of ${known}, or one of them`);
  }
  return styles as readonly RateLimitStyle[];
}

/** Milliseconds as whole seconds, rounded up: a client that waits this long always gets past the window (S7). */
function wholeSeconds(ms: number): string {
  return String(Math.ceil(ms / 1_000));
}

/**
 * The name that the user chose, unless it is another window's already; else the limit, the unit and the duration, of a
 * group after its name.
 */
function policyNames({ windows }: WindowSet): readonly string[] {
  return windows.map(({ limit, durationMs, unit, name, group }, at) => {
    const isOwn = name !== undefined && windows.findIndex((other) => other.name === name) === at;
    const ofGroup = group === undefined ? '' : `${group}:`;
    const unnamed = [limit, ...(unit === undefined ? [] : [unit]), formatDuration(durationMs)].join('-');
    return `"${isOwn ? name : `${ofGroup}${unnamed}`}"`;
  });
}
