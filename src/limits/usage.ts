import { OptionError, SubjectError } from '../base/errors.ts';
import { checkOptions, isPlainObject } from '../base/options.ts';
import type { WindowStatus } from '../core/decision.ts';
import { formatWindow } from '../core/limit.ts';
import { hasSharedCount, type WindowSet } from '../core/window-set.ts';
import type { Subject } from './window-set-source.ts';

/** An account, and the routes to show beside those that the limits name. */
export interface UsageSubject extends Pick<Subject, 'account' | 'provider' | 'plan' | 'lane'> {
  /**
   * Further routes, because limits can count any route. A route whose limit is declared with it needs that limit here.
   * @default none
   */
  readonly routes?: readonly (string | Pick<Subject, 'route' | 'limits'>)[] | undefined;
}

/** The windows of one route. */
export interface RouteUsage {
  readonly route: string;
  /** Windows that count this route alone, in the order of checking. */
  readonly windows: readonly WindowStatus[];
}

/** Every window of an account. */
export interface Usage {
  /** The routes that the limits name, then the further routes. */
  readonly routes: readonly RouteUsage[];
  /** Windows that all routes of the account share. */
  readonly shared: readonly WindowStatus[];
}

/** A window set of an account, as it is read. */
export interface UsageRead {
  readonly windowSet: WindowSet;
  readonly windows: readonly WindowStatus[];
}

const NOT_ROUTES = 'must be a list of routes: strings, or { route, limits }';
const ONE_ROUTE = 'name it in routes';

/**
 * The account without the further routes, and these as subjects.
 * @throws OptionError, SubjectError
 */
export function checkUsageSubject(given: UsageSubject): {
  readonly account: Subject;
  readonly routes: readonly Subject[];
} {
  checkOptions(given, ['account', 'provider', 'plan', 'lane', 'routes'], 'subject', (name) =>
    name === 'route' ? ONE_ROUTE : undefined,
  );
  const { routes = [], ...account } = given;
  if (!Array.isArray(routes)) throw new OptionError('subject.routes', routes, NOT_ROUTES);
  const subjects = routes.map((each: string | Pick<Subject, 'route' | 'limits'>) => {
    if (typeof each === 'string') return { ...account, route: each };
    if (!isPlainObject(each)) throw new OptionError('subject.routes', each, NOT_ROUTES);
    checkOptions(each, ['route', 'limits'], 'subject.routes');
    if (typeof each.route !== 'string') throw new SubjectError('route', each.route);
    return { ...account, ...each };
  });
  return { account, routes: subjects };
}

/** The subjects without those whose route came before, unless they bring a limit along. */
export function distinctRoutes(subjects: readonly Subject[]): readonly Subject[] {
  const byRoute = new Map<string | undefined, Subject>();
  for (const subject of subjects)
    if (!byRoute.has(subject.route) || subject.limits !== undefined) byRoute.set(subject.route, subject);
  return [...byRoute.values()];
}

/** @param reads of each route, in the order of `routes`, and of any other route */
export function usageOf(routes: readonly Subject[], reads: readonly UsageRead[]): Usage {
  const shared = new Map<string, WindowStatus>();
  const own = reads.map(({ windowSet, windows }) => {
    const hasShared = hasSharedCount(windowSet);
    const isShared = ({ limit }: WindowStatus) => hasShared && limit === 'all-methods';
    // A function can return other limits for each route.
    for (const window of windows.filter(isShared)) shared.set(formatWindow(window), window);
    return windows.filter((window) => !isShared(window));
  });
  return {
    routes: routes.map(({ route }, i) => ({ route: route as string, windows: own[i] as readonly WindowStatus[] })),
    shared: [...shared.values()].sort((one, other) => one.durationMs - other.durationMs),
  };
}
