import { isHeadgateError } from 'headgate';
import { METHODS } from '../domain/methods.ts';
import { canonicalWindows } from '../limits/windows.ts';
import { unknown } from './here.ts';
import type { Inputs } from './inputs.ts';

/** The limit that applies to every route, in a form. Other values are routes. */
const ALL_METHODS = 'all';
const ROUTE_VALUES = [ALL_METHODS, ...METHODS] as const;
const MAX_WINDOWS = 2;

/** The value that a form uses for the limit of a route. */
export const formValueOf = (route: string | null): string => route ?? ALL_METHODS;

/** The label of the limit of a route, for people. */
export const limitLabel = (route: string | null): string => route ?? 'All methods';

/** A change of a limit, as a form asks for it. */
export interface LimitForm {
  readonly route: string | null;
  /** Null: the limit is reset. Undefined: they are faulty. */
  readonly windows: readonly string[] | null | undefined;
  /** The version of the limit that the person saw. */
  readonly seen: number;
}

/** @throws UnknownPageError if the limit does not exist */
export function readLimitForm(inputs: Inputs): LimitForm {
  const value = inputs.choice('route', ROUTE_VALUES);
  if (value === undefined) return unknown();
  return {
    route: value === ALL_METHODS ? null : value,
    windows: windowsIn(inputs),
    seen: versionIn(inputs.raw('seen')),
  };
}

/** Another text than a page has is a version that no limit has. */
const versionIn = (text: string): number => (/^\d{1,15}$/.test(text) ? Number(text) : Number.MAX_SAFE_INTEGER);

function windowsIn(inputs: Inputs): readonly string[] | null | undefined {
  if (inputs.raw('reset') !== '') return null;
  const texts = inputs
    .raw('windows')
    .split(/[\s,]+/)
    .filter((text) => text !== '');
  if (texts.length === 0 || texts.length > MAX_WINDOWS)
    inputs.fault('windows', 'Enter one or two windows, such as 120/1m, 20000/1d.');
  else {
    try {
      return canonicalWindows(texts, 'windows');
    } catch (error) {
      if (!isHeadgateError(error, 'invalid_limit')) throw error;
      inputs.fault('windows', error.message);
    }
  }
  return undefined;
}
