import { createLimiter, type Decision, formatDuration, type Limiter, type WindowStatus } from 'headgate';
import { type HeaderFields, rateLimitFields } from 'headgate/http';
import type { LimitName } from 'headgate/limits';
import { createMemoryStore } from 'headgate/memory';
import type { WindowSet } from 'headgate/stores';
import { type PlaygroundLimits, type Policy, SUBJECT } from './limits.ts';

/** A request of the history, and what the limiter said. */
export interface Answered {
  readonly atMs: number;
  readonly decision: Decision;
  readonly fields: HeaderFields;
}

/** One run of a window: from its first accepted request until its duration is over. */
export interface Instance {
  readonly startMs: number;
  readonly endMs: number;
  /** What was used from a moment on. */
  readonly steps: readonly { readonly atMs: number; readonly used: number }[];
}

/** A window of the limits, and when it ran. */
export interface WindowRow {
  readonly limit: LimitName;
  readonly durationMs: number;
  /** What it allows from a moment on, or undefined while the limits do not have it. There are two if it is adjusted. */
  readonly maxes: readonly { readonly fromMs: number; readonly max: number | undefined }[];
  readonly instances: readonly Instance[];
  /** When this window rejected a request. */
  readonly rejectedAtMs: readonly number[];
}

/** Most requests of a history: enough to see a limit work, and few enough for a link. */
export const MAX_REQUESTS = 200;

/** The latest moment of a history: a year. */
export const MAX_AT_MS = 366 * 86_400_000;

/**
 * Sends requests at the given moments, in ascending order, to a new limiter with a clock of its own. Nothing is
 * imitated: these are the limiter, the memory store and the header fields of the package.
 */
export function play({ limits, adjustment }: Policy, moments: readonly number[]): readonly Answered[] {
  let now = 0;
  const store = createMemoryStore({ clock: { now: () => now } });
  const limiter = createLimiter({ store, limits, validate: false });
  let pending = adjustment;
  return moments.map((atMs) => {
    now = atMs;
    if (pending !== undefined && pending.atMs <= atMs) {
      adjust(limiter, pending.limits);
      pending = undefined;
    }
    const decision = limiter.consumeSync(SUBJECT);
    return { atMs, decision, fields: rateLimitFields(decision) };
  });
}

/** Replaces the limits of a limiter that has counters. */
export function adjust(limiter: Limiter, { allMethods, routes }: PlaygroundLimits): void {
  limiter.adjust({}, allMethods);
  for (const [route, windows] of Object.entries(routes)) limiter.adjust({ route }, windows);
}

/** What a request would be told at a moment, after all that were sent until then. */
export function answerAt(policy: Policy, moments: readonly number[], atMs: number): Answered {
  const earlier = moments.filter((moment) => moment <= atMs);
  return play(policy, [...earlier, atMs]).at(-1) as Answered;
}

const isOf = (
  row: Pick<WindowRow, 'limit' | 'durationMs'>,
  status: Pick<WindowStatus, 'limit' | 'durationMs'>,
): boolean => row.limit === status.limit && row.durationMs === status.durationMs;

/** Every window of the limits with its instances, as the decisions report them. */
export function windowRows(history: readonly Answered[], policy: Policy): readonly WindowRow[] {
  return windowsOfPolicy(policy).map((row) => {
    const instances: Instance[] = [];
    const rejectedAtMs: number[] = [];
    for (const { atMs, decision } of history) {
      const status = decision.trace.find((one) => isOf(row, one));
      if (decision.accepted && status !== undefined) addStep(instances, status, atMs);
      else if (decision.shown !== undefined && isOf(row, decision.shown)) rejectedAtMs.push(atMs);
    }
    const removed = row.maxes.find(({ max }, index) => index > 0 && max === undefined)?.fromMs ?? Infinity;
    return {
      ...row,
      instances: instances.map((one) => ({ ...one, endMs: Math.min(one.endMs, removed) })),
      rejectedAtMs,
    };
  });
}

/** The windows before and after the adjustment: the route's first, and the shorter ones first. */
function windowsOfPolicy({ limits, adjustment }: Policy): readonly Pick<WindowRow, 'limit' | 'durationMs' | 'maxes'>[] {
  const before = windowSetOf(limits).windows;
  if (adjustment === undefined) {
    return before.map(({ limit, durationMs, max }) => ({ limit, durationMs, maxes: [{ fromMs: 0, max }] }));
  }
  const after = windowSetOf(adjustment.limits).windows;
  const isRoute = ({ limit }: (typeof before)[number]): number => (limit === 'route' ? 0 : 1);
  return [...before, ...after.filter((window) => !before.some((one) => isOf(one, window)))]
    .sort((a, b) => isRoute(a) - isRoute(b) || a.durationMs - b.durationMs)
    .map((window) => ({
      limit: window.limit,
      durationMs: window.durationMs,
      maxes: [
        { fromMs: 0, max: before.find((one) => isOf(one, window))?.max },
        { fromMs: adjustment.atMs, max: after.find((one) => isOf(one, window))?.max },
      ],
    }));
}

/** What a window allows at a moment, or undefined if the limits do not have it then. */
export const maxAt = ({ maxes }: WindowRow, atMs: number): number | undefined =>
  maxes.findLast(({ fromMs }) => fromMs <= atMs)?.max;

function addStep(instances: Instance[], { startedAt = 0, durationMs, max, remaining }: WindowStatus, atMs: number) {
  const step = { atMs, used: max - remaining };
  const last = instances.at(-1);
  if (last?.startMs !== startedAt) {
    instances.push({ startMs: startedAt, endMs: startedAt + durationMs, steps: [step] });
  } else {
    instances[instances.length - 1] = { ...last, steps: [...last.steps, step] };
  }
}

export function windowSetOf(limits: PlaygroundLimits): WindowSet {
  return createLimiter({ store: createMemoryStore(), limits, validate: false }).windowSet(SUBJECT);
}

/** The instance that is active at a moment, with what is used then. */
export function activeAt({ instances }: WindowRow, atMs: number): (Instance & { readonly used: number }) | undefined {
  const instance = instances.find(({ startMs, endMs }) => startMs <= atMs && atMs < endMs);
  if (instance === undefined) return undefined;
  return { ...instance, used: instance.steps.findLast((step) => step.atMs <= atMs)?.used ?? 0 };
}

/** `'3/10s'`. */
export const nameOf = ({ max, durationMs }: { max: number; durationMs: number }): string =>
  `${max}/${formatDuration(durationMs)}`;

/** What a candidate decides otherwise, request by request. */
export type Change = 'newly rejected' | 'newly accepted' | undefined;

export function changes(current: readonly Answered[], candidate: readonly Answered[]): readonly Change[] {
  return current.map(({ decision }, index) => {
    const accepted = candidate[index]?.decision.accepted;
    if (accepted === undefined || accepted === decision.accepted) return undefined;
    return accepted ? 'newly accepted' : 'newly rejected';
  });
}
