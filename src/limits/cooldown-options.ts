import { OptionError } from '../base/errors.ts';
import { checkInteger, checkOneOf, checkOptions } from '../base/options.ts';
import { LONGEST_BLOCK_MS } from './blocks.ts';

/** Options of a cooldown (S30). */
export interface CooldownOptions {
  /**
   * What a provider's refusal pauses: the account on this route (`route`), all routes of the account (`account`), or every
   * account of the provider (`provider`): the group of that name, so requests say `groups: { provider: 'openai' }`, and
   * `limits.groups.provider` has a window (S31). A request without that group is not paused.
   * @default 'route'
   */
  readonly scope?: 'account' | 'route' | 'provider' | undefined;
  /**
   * How long the pause is if the provider does not say, in milliseconds. Each refusal in a row doubles it, up to a minute.
   * @default 1_000
   */
  readonly defaultMs?: number | undefined;
  /**
   * The longest pause, in milliseconds, whatever the provider asks for: up to a year.
   * @default 3_600_000
   */
  readonly maxMs?: number | undefined;
  /**
   * The statuses of a refusal. A 503 with `retry-after` is one, too.
   * @default [429]
   */
  readonly statuses?: readonly number[] | undefined;
}

/** A response of a provider: that of `fetch`, or its status and header fields. */
export interface ProviderResponse {
  readonly status: number;
  /** `Headers`, or an object with the fields by their names. */
  readonly headers:
    | {
        /** Returns the value of a field; null without it. */
        get(name: string): string | null;
      }
    | Readonly<Record<string, string | number | readonly string[] | undefined>>;
}

/** {@link CooldownOptions} with their defaults. */
export type CooldownSettings = Required<{ [Name in keyof CooldownOptions]: NonNullable<CooldownOptions[Name]> }>;

/** Reads a header field by its name in lower case. */
export type ReadField = (name: string) => string | null | undefined;

const OPTIONS = ['scope', 'defaultMs', 'maxMs', 'statuses'];
const NOT_STATUSES = 'must be a list of HTTP statuses from 400 to 599';
const NOT_RESPONSE =
  'must be the response of fetch, or an object such as { status: 429, headers: { "retry-after": "3" } }';
/**
 * The settings; undefined without a cooldown.
 * @throws OptionError
 */
export function cooldownSettings(given: boolean | CooldownOptions | undefined): CooldownSettings | undefined {
  if (given === undefined || given === false) return undefined;
  const options = given === true ? {} : given;
  checkOptions(options, OPTIONS, 'cooldown');
  const { scope = 'route', maxMs = 3_600_000, statuses = [429] } = options;
  const { defaultMs = Math.min(1_000, maxMs) } = options;
  checkOneOf('cooldown.scope', scope, ['account', 'route', 'provider']);
  checkInteger('cooldown.maxMs', maxMs, 1, LONGEST_BLOCK_MS);
  checkInteger('cooldown.defaultMs', defaultMs, 1, maxMs);
  const isStatus = (one: unknown): boolean => Number.isInteger(one) && (one as number) >= 400 && (one as number) < 600;
  if (!Array.isArray(statuses) || statuses.length === 0 || !statuses.every(isStatus))
    throw new OptionError('cooldown.statuses', statuses, NOT_STATUSES);
  return { scope, defaultMs, maxMs, statuses };
}

/**
 * Reads a field of the response.
 * @throws OptionError
 */
export function fieldsOf(response: ProviderResponse): ReadField {
  const { status, headers } = Object(response) as Partial<ProviderResponse>;
  if (!Number.isInteger(status) || typeof headers !== 'object' || headers === null)
    throw new OptionError('response', response, NOT_RESPONSE);
  if (isHeaders(headers)) return (name) => headers.get(name);
  const fields = Object.entries(headers);
  return (name) => {
    const value = fields.find(([other]) => other.toLowerCase() === name)?.[1];
    return value === undefined ? undefined : String(value);
  };
}

function isHeaders(headers: ProviderResponse['headers']): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function';
}
