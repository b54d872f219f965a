import { formatWindow, OptionError, parseDuration, parseLimit } from 'headgate';
import { checkOptions, createUnshardedStore } from 'headgate/internal';
import type { MemoryStore } from 'headgate/memory';
import { createWindowSet, type WindowSet } from 'headgate/stores';
import { getOrCreate } from './get-or-create.ts';
import { TraceClock } from './policy.ts';
import { emptyFigures, type Trace, type TraceEvent, type TraceFigures, type TraceRequest } from './trace.ts';

/** Options of {@link recommend}. */
export interface RecommendOptions {
  /** What `readTrace` returned, or events in the order of their times. */
  readonly trace: Trace | Iterable<TraceEvent>;
  /** Durations of the windows, such as `['1m', '1d']`. */
  readonly windows: readonly string[];
  /**
   * Part of the requests, or of the accounts, of a route that no limit rejects: from 0 to 1.
   * @default 0.999
   */
  readonly keep?: number | undefined;
  /**
   * Whether requests are counted, or accounts: an account is rejected if one of its requests is.
   * @default 'requests'
   */
  readonly by?: 'requests' | 'accounts' | undefined;
  /** Called from time to time, with the figures so far. */
  readonly onProgress?: ((figures: TraceFigures) => void) | undefined;
}

/** The smallest max of a window. */
export interface RecommendedLimit {
  /** Such as `100/1m`; undefined if even 1,000,000 is too small. */
  readonly window: string | undefined;
  readonly duration: string;
  /** Undefined if even 1,000,000 is too small. */
  readonly max: number | undefined;
  /** Part of the requests, or of the accounts, that this window alone would reject. */
  readonly rejected: number;
}

/** What {@link recommend} found. */
export interface Recommendation {
  readonly trace: Readonly<TraceFigures>;
  readonly keep: number;
  readonly by: 'requests' | 'accounts';
  /** The routes of the trace, the busiest first. */
  readonly routes: readonly {
    readonly route: string;
    readonly requests: number;
    readonly accounts: number;
    readonly windows: readonly RecommendedLimit[];
  }[];
  /** `limits` of a config, with the routes for which every window got a max. */
  readonly limits: { readonly default: { readonly routes: Readonly<Record<string, readonly string[]>> } };
  /**
   * Whether the log contains rejections: then it shows only the demand that the limits of its time let through, and
   * their rejections.
   */
  readonly isLimited: boolean;
}

/** 1, 2, 5, 10, … */
const LADDER = /* @__PURE__ */ Array.from(
  { length: 19 },
  (_, i) => ([1, 2, 5][i % 3] as number) * 10 ** Math.floor(i / 3),
);
const MAX_KEYS = 16_000_000;
const MAX_WINDOWS = 4;
const DEFAULT_KEEP = 0.999;

/** A window with one max, and the number of its rejections per route. */
interface Step {
  readonly windowSet: WindowSet;
  readonly store: MemoryStore;
  readonly rejected: Map<string, RouteCount>;
}

interface RouteCount {
  requests: number;
  readonly accounts: Set<string>;
}

/**
 * Finds, for each route of a trace, the smallest limit that would reject at most so many requests or accounts. It tries
 * each max of the ladder 1, 2, 5, 10, … with the core and the memory store of headgate. The allowed rejections are
 * divided evenly among the windows.
 * @throws OptionError, LimitError with the place of the fault; TraceError if the trace is damaged
 */
export async function recommend(options: RecommendOptions): Promise<Recommendation> {
  checkOptions(options, ['trace', 'windows', 'keep', 'by', 'onProgress'], 'options');
  const { trace, keep = DEFAULT_KEEP, by = 'requests', onProgress } = options;
  if (!(keep >= 0 && keep <= 1)) throw new OptionError('keep', keep, 'must be from 0 to 1');
  if (by !== 'requests' && by !== 'accounts') throw new OptionError('by', by, 'must be requests or accounts');
  const durations = durationsIn(options.windows);
  const clock = new TraceClock();
  const windows = durations.map((durationMs) => LADDER.map((max) => createStep(max, durationMs, clock)));
  const routes = new Map<string, RouteCount>();
  let isLimited = false;
  const add = (event: TraceEvent): void => {
    clock.moveTo(event.at);
    if ('settles' in event && event.settles !== undefined) return;
    const request = event as TraceRequest;
    isLimited ||= request.logged === 'rejected';
    count(routes, request);
    for (const steps of windows)
      for (const { windowSet, store, rejected } of steps)
        if (!store.consume(request.account, request.route, windowSet, requestsOf(request)).accepted)
          count(rejected, request);
  };
  let figures = emptyFigures();
  if (Symbol.asyncIterator in trace) {
    figures = trace.figures;
    for await (const events of trace) {
      for (const event of events) add(event);
      onProgress?.(figures);
    }
  } else {
    for (const event of trace) {
      if (!('settles' in event)) figures.requests++;
      add(event);
    }
  }
  const allowed = (1 - keep) / windows.length;
  const found = [...routes]
    .sort(([, a], [, b]) => b.requests - a.requests)
    .map(([route, all]) => ({
      route,
      requests: all.requests,
      accounts: all.accounts.size,
      windows: windows.map((steps) => smallest(steps, route, sizeOf(all, by), by, allowed)),
    }));
  return { trace: figures, keep, by, routes: found, limits: limitsOf(found), isLimited };
}

/** The cost in requests: the limits that are found count nothing else. */
function requestsOf({ cost = 1 }: TraceRequest): number {
  return typeof cost === 'number' ? cost : (cost.requests ?? 1);
}

function durationsIn(windows: readonly string[]): number[] {
  if (!Array.isArray(windows) || windows.length === 0 || windows.length > MAX_WINDOWS)
    throw new OptionError('windows', windows, `must have 1 to ${MAX_WINDOWS} durations, such as ["1m", "1d"]`);
  const given = windows.map((window, i) => ({ max: 1, durationMs: parseDuration(String(window), `windows[${i}]`) }));
  return parseLimit(given, 'windows').map(({ durationMs }) => durationMs);
}

function createStep(max: number, durationMs: number, clock: TraceClock): Step {
  const windowSet = createWindowSet([{ max, durationMs }], []);
  return { windowSet, store: createUnshardedStore({ maxKeys: MAX_KEYS, clock }), rejected: new Map() };
}

function count(counts: Map<string, RouteCount>, { account, route }: TraceRequest): void {
  const counted = getOrCreate(counts, route, () => ({ requests: 0, accounts: new Set<string>() }));
  counted.requests++;
  counted.accounts.add(account);
}

const sizeOf = ({ requests, accounts }: RouteCount, by: Recommendation['by']): number =>
  by === 'requests' ? requests : accounts.size;

function smallest(
  steps: readonly Step[],
  route: string,
  all: number,
  by: Recommendation['by'],
  allowed: number,
): RecommendedLimit {
  let last: RecommendedLimit | undefined;
  for (const { windowSet, rejected } of steps) {
    const [window] = windowSet.windows as [WindowSet['windows'][number]];
    const counted = rejected.get(route);
    const part = counted === undefined ? 0 : sizeOf(counted, by) / all;
    const text = formatWindow(window);
    const duration = text.slice(text.indexOf('/') + 1);
    if (part <= allowed) return { window: text, duration, max: window.max, rejected: part };
    last = { window: undefined, duration, max: undefined, rejected: part };
  }
  return last as RecommendedLimit;
}

function limitsOf(routes: Recommendation['routes']): Recommendation['limits'] {
  const whole = routes.flatMap(({ route, windows }) => {
    const texts = windows.flatMap(({ window }) => window ?? []);
    return texts.length === windows.length ? [[route, texts] as const] : [];
  });
  return { default: { routes: Object.fromEntries(whole) } };
}
