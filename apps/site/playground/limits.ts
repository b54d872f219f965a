import { createLimiter, isHeadgateError, type LimitInput } from 'headgate';
import { createMemoryStore } from 'headgate/memory';

/** The only account and route of the playground. */
export const SUBJECT = { account: 'acc_1', route: 'POST /api/v1/emails' };

/** Limits as they are typed: windows with commas between them. */
export interface LimitTexts {
  readonly route: string;
  readonly allMethods: string;
}

export type LimitField = keyof LimitTexts;

/** Limits that `createLimiter` accepts. */
export interface PlaygroundLimits {
  readonly allMethods: LimitInput;
  readonly routes: Readonly<Record<string, LimitInput>>;
}

/** Limits, and those that replace them at a moment, as `limiter.adjust` does while requests go on. */
export interface Policy {
  readonly limits: PlaygroundLimits;
  readonly adjustment?: { readonly atMs: number; readonly limits: PlaygroundLimits } | undefined;
}

/** What an error message of the library says, and the field that it is about. */
export interface LimitFault {
  readonly field: LimitField;
  readonly message: string;
}

/** More windows than anyone needs, and as many as there is room for. */
export const MAX_WINDOWS = 6;
export const MAX_TEXT = 200;

export const windowsOf = (text: string): string[] => text.split(/[\s,]+/).filter((window) => window !== '');

/** The limits that were typed, or what the library says about them. */
export function readLimits(texts: LimitTexts): PlaygroundLimits | LimitFault {
  for (const field of ['route', 'allMethods'] as const) {
    const { length } = windowsOf(texts[field]);
    if (texts[field].length > MAX_TEXT) return { field, message: `The playground reads ${MAX_TEXT} characters.` };
    if (length > MAX_WINDOWS) return { field, message: `The playground shows ${MAX_WINDOWS} windows, got ${length}.` };
  }
  const limits = {
    allMethods: windowsOf(texts.allMethods),
    routes: { [SUBJECT.route]: windowsOf(texts.route) },
  };
  try {
    createLimiter({ store: createMemoryStore(), limits, validate: false });
    return limits;
  } catch (error) {
    if (!isHeadgateError(error)) throw error;
    return { field: error.message.startsWith('limits.routes') ? 'route' : 'allMethods', message: error.message };
  }
}

export const isFault = (limits: PlaygroundLimits | LimitFault): limits is LimitFault => 'message' in limits;
