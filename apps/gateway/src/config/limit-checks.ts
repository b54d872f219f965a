import { parseLimit } from 'headgate';
import { describe } from 'headgate/internal';
import { consumerId, consumerOf } from './account-source.ts';
import { type ConfigIssue, formatPath, issueIf } from './config-error.ts';
import { groupNameIssues } from './groups.ts';
import { arrayOrEmpty, type JsonObject, objectOrEmpty } from './json.ts';
import { missingLane } from './lanes.ts';
import { didYouMean } from './suggest.ts';
import { nameOfKey } from './token-checks.ts';

const NO_DEFAULT = 'must be given with plans: it has the limits of accounts without a plan';

/** The known names of a config's limits. */
interface Names {
  readonly accounts: readonly string[];
  readonly routes: readonly string[];
}

/** The names of accounts and routes that limits of a file can use. */
export function namesIn(file: JsonObject): Names {
  const consumers = arrayOrEmpty(file.keys).flatMap((value) => {
    const key = objectOrEmpty(value);
    return [consumerId('key', nameOfKey(key) ?? ''), consumerId('application', String(key.application))];
  });
  const groups = ['accounts', 'keys', 'routes'].flatMap((list) =>
    arrayOrEmpty(file[list]).flatMap((each) =>
      Object.entries(objectOrEmpty(objectOrEmpty(each).groups)).map(([name, id]) => `group:${name}:${id}`),
    ),
  );
  return {
    accounts: [...textsOf(file.accounts, 'id'), ...consumers, ...groups],
    routes: textsOf(file.routes, 'route'),
  };
}

/**
 * Checks a candidate, also one that does not come from the file.
 * @param file the config
 */
export function shadowIssues({ limits, store }: JsonObject, file: JsonObject): ConfigIssue[] {
  const { plans } = objectOrEmpty(limits);
  const lane = missingLane(file, objectOrEmpty(limits));
  const known = Object.keys(objectOrEmpty(plans));
  const payers = [...arrayOrEmpty(file.accounts), ...arrayOrEmpty(file.keys)];
  const needed = new Set(payers.map((payer) => objectOrEmpty(payer).plan));
  const missing = [...needed].filter(
    (plan): plan is string => typeof plan === 'string' && plan !== '' && !known.includes(plan),
  );
  return [
    ...limitIssues('shadow.limits', objectOrEmpty(limits), namesIn(file)),
    ...groupNameIssues('shadow.limits', objectOrEmpty(limits)),
    ...inFlightIssues(objectOrEmpty(limits)),
    ...issueIf(
      'shadow.limits.plans',
      missing[0] === undefined
        ? undefined
        : `must have ${describe(missing[0])}, which accounts or keys of the file have`,
    ),
    ...issueIf(
      'shadow.limits.lanes',
      lane === undefined ? undefined : `must have ${describe(lane)}, which routes or keys of the file have`,
    ),
    ...issueIf('shadow.store', store === 'memory' ? shadowStoreFlaw(file) : undefined),
  ];
}

/** A candidate decides when a request is under way, so it cannot bound the requests in flight. */
function inFlightIssues(limits: JsonObject): ConfigIssue[] {
  const named = ['plans', 'providers', 'accounts'].flatMap((group) =>
    Object.entries(objectOrEmpty(limits[group])).map(([name, layer]) => [[group, name], layer] as const),
  );
  return [[['default'], limits.default] as const, ...named].flatMap(([path, layer]) => {
    const { allMethods, routes } = objectOrEmpty(layer);
    const all = [
      [['allMethods'], allMethods] as const,
      ...Object.entries(objectOrEmpty(routes)).map(([route, limit]) => [['routes', route], limit] as const),
    ];
    return all.flatMap(([place, limit]) =>
      issueIf(
        formatPath(['shadow', 'limits', ...path, ...place, 'inFlight']),
        objectOrEmpty(limit).inFlight === undefined
          ? undefined
          : 'must be left out: a candidate cannot bound requests in flight',
      ),
    );
  });
}

/** The figures of one worker would not cover the others. */
function shadowStoreFlaw({ workers = 1 }: JsonObject): string | undefined {
  return workers === 1
    ? undefined
    : 'must be "same" with several workers: in memory each of them would count by itself';
}

/** @param place `limits` or `shadow.limits` */
export function limitIssues(place: string, limits: JsonObject, { accounts, routes }: Names): ConfigIssue[] {
  const root = place.split('.');
  const byName = (group: 'plans' | 'providers' | 'accounts' | 'groups') =>
    Object.entries(objectOrEmpty(limits[group])).map(([name, layer]) => [[...root, group, name], layer] as const);
  const layers = [
    [[...root, 'default'], limits.default] as const,
    ...byName('plans'),
    ...byName('providers'),
    ...byName('accounts'),
    ...byName('groups'),
  ];
  return [
    // As in the library: without it, an account whose plan was forgotten would not be limited.
    ...issueIf(`${place}.default`, limits.plans !== undefined && limits.default === undefined ? NO_DEFAULT : undefined),
    ...unknownNames([...root, 'accounts'], objectOrEmpty(limits.accounts), accounts, 'account'),
    ...layers.flatMap(([path, layer]) => layerIssues(path, objectOrEmpty(layer), routes)),
  ];
}

function layerIssues(path: readonly string[], layer: JsonObject, routes: readonly string[]): ConfigIssue[] {
  const { allMethods } = layer;
  const limits = objectOrEmpty(layer.routes);
  return [
    ...windowIssues([...path, 'allMethods'], allMethods),
    ...unknownNames([...path, 'routes'], limits, routes, 'route'),
    ...Object.entries(limits).flatMap(([route, limit]) => windowIssues([...path, 'routes', route], limit)),
  ];
}

function windowIssues(path: readonly string[], limit: unknown): ConfigIssue[] {
  return Array.isArray(limit)
    ? durationIssues(path, limit)
    : durationIssues([...path, 'windows'], objectOrEmpty(limit).windows);
}

/** @param known the names in the file's own list */
function unknownNames(
  path: readonly string[],
  values: JsonObject,
  known: readonly string[],
  noun: 'route' | 'account',
): ConfigIssue[] {
  const listed = new Set(known);
  // Addresses cannot be listed.
  const unknown = Object.keys(values).filter((name) => !listed.has(name) && consumerOf(name)?.consumer !== 'address');
  return unknown.map((name) => ({
    path: formatPath([...path, name]),
    reason: `the file has no such ${noun}${didYouMean(name, known)}`,
  }));
}

/** Finds windows of equal duration. The schema reports malformed windows. */
export function durationIssues(path: readonly string[], limit: unknown): ConfigIssue[] {
  try {
    if (Array.isArray(limit)) parseLimit(limit, 'limit');
    return [];
  } catch (error) {
    return issueIf(formatPath(path), /^limit: (.*)$/s.exec((error as Error).message)?.[1]);
  }
}

function textsOf(values: unknown, name: 'id' | 'route'): string[] {
  const texts = arrayOrEmpty(values).map((value) => objectOrEmpty(value)[name]);
  return texts.filter((text) => typeof text === 'string');
}
