import { formatWindow, parseLimit } from 'headgate';
import type { Limit } from 'headgate/limits';
import { type ConfigIssue, formatPath } from './config-error.ts';
import { windowsOf } from './limits.ts';
import type { Config } from './schema.ts';

type Layer = Config['limits']['default'];
type Group = 'plans' | 'providers' | 'accounts';

/** From the least specific layers to the most specific ones. */
const GROUPS: readonly Group[] = ['plans', 'providers', 'accounts'];

/** Windows that can never reject, because another window that always applies too admits too few requests for that. */
export function layerWarnings({ limits, perAddress }: Config): ConfigIssue[] {
  const groups = GROUPS.map((group) =>
    Object.entries(limits[group]).map(([name, layer]) => ({ path: [group, name], layer })),
  );
  const levels = [[{ path: ['default'], layer: limits.default }], ...groups];
  const setsAllMethods = levels.map((level) => level.some(({ layer }) => windowsOf(layer.allMethods) !== undefined));
  // The recommended limits are layers of providers.
  if (limits.recommended) setsAllMethods[2] = true;
  const found = levels.flatMap((level, at) =>
    level.flatMap(({ path, layer }) => {
      const place = ['limits', ...path];
      const own = windowsOf(layer.allMethods) === undefined ? undefined : windowsIn(layer.allMethods);
      const isReplaced = setsAllMethods.slice(at + 1).includes(true);
      const isDefaults = !setsAllMethods.slice(1).includes(true);
      const beside = isReplaced ? [] : (own ?? (isDefaults ? windowsIn(limits.default.allMethods) : []));
      return [
        ...idleIn([...place, 'allMethods'], own ?? [], []),
        ...Object.entries(layer.routes ?? {}).flatMap(([route, limit]) =>
          idleIn([...place, 'routes', route], parseLimit(windowsOf(limit) ?? []), beside),
        ),
      ];
    }),
  );
  if (perAddress) found.push(...idleIn(['perAddress'], parseLimit(perAddress.windows), []));
  const [first] = found;
  if (first === undefined) return [];
  const others = found.length === 1 ? '' : `; and ${found.length - 1} more`;
  return [{ path: first.path, reason: `${first.reason}${others}` }];
}

function windowsIn(allMethods: Layer['allMethods'] = []): Limit {
  return parseLimit(windowsOf(allMethods) ?? []);
}

/**
 * A window begins with its first accepted request. So a shorter window can lie in two windows of the longer one, and
 * meet twice its max.
 */
function idleIn(path: readonly string[], windows: Limit, beside: Limit): ConfigIssue[] {
  return windows.flatMap((window) => {
    const narrower = [...windows, ...beside].find(
      ({ max, durationMs, unit }) =>
        unit === window.unit && max > 0 && durationMs >= window.durationMs && window.max >= 2 * max,
    );
    if (narrower === undefined) return [];
    const reason = `${formatWindow(window)} never rejects a request, because ${formatWindow(narrower)} applies too and admits fewer`;
    return [{ path: formatPath(path), reason: `${reason}: remove it, or correct one of the two` }];
  });
}
