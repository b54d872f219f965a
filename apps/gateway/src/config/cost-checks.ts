import { describe, parseWindow } from 'headgate/internal';
import { type ConfigIssue, formatPath } from './config-error.ts';
import { arrayOrEmpty, isObject, type JsonObject, objectOrEmpty } from './json.ts';
import type { Config } from './schema.ts';
import { didYouMean } from './suggest.ts';

const REQUESTS = 'requests';

/** Units in the costs of routes that no limit counts, so that they would cost nothing. Works on the raw file. */
export function costIssues(file: JsonObject): ConfigIssue[] {
  const known = [REQUESTS, ...unitsIn(objectOrEmpty(file.limits))];
  return arrayOrEmpty(file.routes).flatMap((route, index) => {
    const { cost, finalCost } = objectOrEmpty(route);
    const charged = isObject(cost) ? Object.keys(cost) : [REQUESTS];
    const unknown = charged
      .filter((unit) => !known.includes(unit))
      .map((unit) => ({
        path: formatPath(['routes', index, 'cost', unit]),
        reason: `no window of limits counts ${describe(unit)}${didYouMean(unit, known)}`,
      }));
    const uncharged = Object.keys(objectOrEmpty(finalCost))
      .filter((unit) => !charged.includes(unit))
      .map((unit) => ({
        path: formatPath(['routes', index, 'finalCost', unit]),
        reason: `cost of the route must name ${describe(unit)} too: only what was charged before can be corrected`,
      }));
    return [...unknown, ...uncharged];
  });
}

/** Units that the limits count, but no route costs: their windows look like limits, and limit nothing. */
export function unitWarnings({ limits, routes, decisions }: Config): ConfigIssue[] {
  // A program can name a unit in its question.
  if (decisions !== undefined) return [];
  const charged = new Set(routes.flatMap(({ cost }) => (isObject(cost) ? Object.keys(cost) : [])));
  return [...new Set(unitsIn({ ...limits }))]
    .filter((unit) => !charged.has(unit))
    .map((unit) => ({
      path: 'routes',
      reason: `no route has a cost in ${unit}, so windows of ${unit} never apply: add "cost": { "requests": 1, "${unit}": 1 } to one`,
    }));
}

/** What the windows of limits count beside requests. */
function unitsIn(limits: JsonObject): readonly string[] {
  const { default: common, plans, providers, accounts, groups } = limits;
  const named = [plans, providers, accounts, groups].flatMap((layers) => Object.values(objectOrEmpty(layers)));
  const windows = [common, ...named].flatMap((layer) => {
    const { allMethods, routes } = objectOrEmpty(layer);
    return [layer, allMethods, ...Object.values(objectOrEmpty(routes))].flatMap(windowsIn);
  });
  return windows.flatMap((window) => {
    try {
      return parseWindow(window as string).unit ?? [];
    } catch {
      // The schema reports it.
      return [];
    }
  });
}

function windowsIn(limit: unknown): readonly unknown[] {
  return arrayOrEmpty(Array.isArray(limit) ? limit : objectOrEmpty(limit).windows);
}
