import { parseLimit } from 'headgate';
import { shareOfMax } from 'headgate/internal';
import { type ConfigIssue, formatPath } from './config-error.ts';
import { arrayOrEmpty, type JsonObject, objectOrEmpty } from './json.ts';
import { layerHasWindows, windowsOf } from './limits.ts';
import type { Config } from './schema.ts';
import { didYouMean } from './suggest.ts';

type Shares = Config['limits']['lanes'];

/** Chooses among the lanes of a route, a key and a caller: the lane with the smallest share, so that none lifts another. */
export type ChooseLane = (...lanes: readonly (string | undefined)[]) => string | undefined;

/** @param shares of the lanes that routes and keys name, which the checks of a config ensure */
export function laneChoice(shares: Shares): ChooseLane {
  const shareOf = (lane: string): number => shares[lane] as number;
  return (...lanes) => {
    let chosen: string | undefined;
    for (const lane of lanes)
      if (lane !== undefined && (chosen === undefined || shareOf(lane) < shareOf(chosen))) chosen = lane;
    return chosen;
  };
}

/** Each request of such a route or key would get a 500. No reason shows the lane of a key, which may be a token. */
export function laneIssues(file: JsonObject): ConfigIssue[] {
  const known = Object.keys(objectOrEmpty(objectOrEmpty(file.limits).lanes));
  const unknown = (list: unknown): (readonly [index: number, lane: string])[] =>
    arrayOrEmpty(list).flatMap((each, index) => {
      const { lane } = objectOrEmpty(each);
      return typeof lane !== 'string' || lane === '' || known.includes(lane) ? [] : [[index, lane] as const];
    });
  const listed = known.length === 0 ? '' : `: ${known.join(', ')}`;
  return [
    ...unknown(file.routes).map(([i, lane]) => ({
      path: `routes[${i}].lane`,
      reason: `limits.lanes has no ${JSON.stringify(lane)}${didYouMean(lane, known)}`,
    })),
    ...unknown(file.keys).map(([i]) => ({ path: `keys[${i}].lane`, reason: `limits.lanes has no such lane${listed}` })),
  ];
}

/** The first lane of a route or a key that other limits lack. */
export function missingLane(file: JsonObject, limits: JsonObject): string | undefined {
  const known = Object.keys(objectOrEmpty(limits.lanes));
  const used = [...arrayOrEmpty(file.routes), ...arrayOrEmpty(file.keys)].map((each) => objectOrEmpty(each).lane);
  return used.find((lane): lane is string => typeof lane === 'string' && lane !== '' && !known.includes(lane));
}

/** Lanes that no request has, and shares of a max that leave nothing. */
export function laneWarnings({ limits, routes, keys, decisions }: Config): ConfigIssue[] {
  const used = new Set([...routes, ...keys].flatMap(({ lane }) => lane ?? []));
  const layers = [
    [['limits', 'default'], limits.default] as const,
    ...(['plans', 'providers', 'accounts', 'groups'] as const).flatMap((group) =>
      Object.entries(limits[group]).map(([name, layer]) => [['limits', group, name], layer] as const),
    ),
  ];
  return Object.entries(limits.lanes).flatMap(([name, share]) => [
    // A program can name a lane in its question.
    ...(used.has(name) || decisions !== undefined
      ? []
      : [{ path: formatPath(['limits', 'lanes', name]), reason: 'no route and no key has this lane' }]),
    ...layers.flatMap(([path, layer]) => {
      const empty = layerHasWindows(layer)
        ? maxesOf(layer).find((max) => max > 0 && shareOfMax(max, share) === 0)
        : undefined;
      if (empty === undefined) return [];
      const reason = `${share} of ${empty} is 0, rounded down: this layer rejects every request of the lane ${name}`;
      return [{ path: formatPath([...path]), reason }];
    }),
  ]);
}

/** The max of each window of a layer. */
function maxesOf({ allMethods, routes = {} }: Config['limits']['default']): number[] {
  const windows = [allMethods, ...Object.values(routes)].flatMap((limit) => parseLimit(windowsOf(limit) ?? []));
  return windows.map(({ max }) => max);
}
