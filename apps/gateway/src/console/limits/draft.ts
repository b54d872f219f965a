import type { Limit } from '../api/answers.ts';
import type { ApiError, Asked } from '../api/client.ts';
import { endOfRequest } from '../parts/end-fields.tsx';
import { windowText } from '../parts/format.ts';
import type { Target } from '../parts/target.ts';
import type { ShownWindow } from '../parts/window-bar.tsx';

/** The kinds of a change of a limit. `reset`: as in the config. */
export type Wish = 'windows' | 'recommended' | 'none' | 'reset';

/** The end of a change: never, after a number of milliseconds, or at a time. */
export type End = 'never' | '900000' | '3600000' | '86400000' | 'at';

/** A change that an operator is making. Nothing is written yet. */
export interface Draft {
  readonly wish: Wish;
  /** Texts such as `60/1m`. */
  readonly windows: readonly string[];
  readonly reason: string;
  readonly end: End;
  /** The operator's date and time, if it ends `at` one. */
  readonly at: string;
}

/** Windows that an operator often wants, ready to be chosen. */
export interface Preset {
  /** `Double` */
  readonly name: string;
  readonly windows: readonly string[];
}

/** Presets last this long in milliseconds, unless the adjusted limit's own end applies. */
const GRANT: End = '3600000';

/** Presets that raise a limit: its full windows, or else all of its windows. */
export function presetsOf(windows: readonly ShownWindow[]): Preset[] {
  const isAnyFull = windows.some(({ remaining }) => remaining <= 0);
  return FACTORS.flatMap(([name, factor]) => {
    const more = windows.map(({ max, remaining, durationMs, unit }) => {
      const isRaised = !isAnyFull || remaining <= 0;
      return windowText({ max: isRaised ? Math.ceil(max * factor) : max, durationMs, unit });
    });
    return more.join() === windows.map(windowText).join() ? [] : [{ name, windows: more }];
  });
}

const FACTORS = [
  ['Double', 2],
  ['Half more', 1.5],
] as const;

/** A grant must not end later, or earlier, than the operator's adjustment: after it the config applies. */
export function withPreset(draft: Draft, { windows }: Preset, { adjusted }: Limit): Draft {
  return { ...draft, wish: 'windows', windows, ...(adjusted === null ? { end: GRANT } : endsOf(adjusted)) };
}

/**
 * The change that a dialog begins with: the current limit, a reset, or windows to put back (null: the config applied).
 */
export type Beginning = 'now' | 'reset' | readonly string[] | null;

/**
 * A limit that ends keeps its end, unless the operator chooses a new one: a grant for an hour must not become
 * permanent.
 */
export function draftOf({ effective, adjusted }: Limit, beginning: Beginning): Draft {
  const isReset = beginning === 'reset' || beginning === null;
  const windows = isReset || beginning === 'now' ? (effective ?? []) : beginning;
  const isRemoval = Array.isArray(beginning) && beginning.length === 0;
  return {
    wish: isReset ? 'reset' : isRemoval ? 'none' : 'windows',
    windows: windows.length === 0 ? [''] : windows,
    reason: '',
    ...endsOf(adjusted),
  };
}

function endsOf(adjusted: Limit['adjusted']): Pick<Draft, 'end' | 'at'> {
  return adjusted?.until ? { end: 'at', at: localText(adjusted.until) } : { end: 'never', at: '' };
}

/** The values that a preview depends on: if one of them changes, a new preview is needed. */
export function effectOf({ wish, windows, end, at }: Draft): string {
  return JSON.stringify(wish === 'reset' ? [wish] : [wish, wish === 'windows' && windows, end, at]);
}

/** When a change would end if it were made now. */
export function endOf({ end, at }: Draft): Date | undefined {
  return end === 'never' ? undefined : new Date(end === 'at' ? at : Date.now() + Number(end));
}

/** The request that makes a change, or previews it. */
export function requestFor(
  target: Target,
  { wish, windows, reason, end, at }: Draft,
  how: { readonly dryRun: true } | { readonly wait: 'applied'; readonly confirm: boolean },
): readonly ['PUT' | 'DELETE', Asked] {
  const { confirm, ...query } = { confirm: false, ...how };
  if (wish === 'reset') return ['DELETE', { query: { ...target, ...query, reason: reason.trim() } }];
  const body = {
    windows: wish === 'windows' ? windows : wish === 'none' ? [] : wish,
    reason: reason.trim(),
    confirm,
    ...(end !== 'never' && endOfRequest({ end, at })),
  };
  return ['PUT', { query: { ...target, ...query }, body }];
}

/** A moment as an input of the browser takes it: in the operator's time zone, to the second. */
function localText(moment: string): string {
  const date = new Date(moment);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

const FAULT = /windows\[(\d+)\]: (.*?)(?:; (?=\w+(?:\[\d+\])?: )|$)/g;

/** The gateway's complaints about each window, and whether it made no others. */
export function faultsOf(error: ApiError | undefined): {
  readonly ofWindow: ReadonlyMap<number, string>;
  readonly areAll: boolean;
} {
  const message = error?.status === 422 ? error.message : '';
  const found = [...message.matchAll(FAULT)].map(([, row, fault]) => [Number(row), fault as string] as const);
  return { ofWindow: new Map(found), areAll: message !== '' && message.replaceAll(FAULT, '') === '' };
}
