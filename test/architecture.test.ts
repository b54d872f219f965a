import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SUBPATHS } from '../scripts/subpaths.mjs';

const ROOT = resolve(import.meta.dirname, '..');
const SRC = join(ROOT, 'src');

/**
 * Which rooms may import which others, by room; `*` is every room. A room is a folder, or a file that is in no folder. Each may
 * import from itself.
 */
type Rooms = Readonly<Record<string, readonly string[]>>;

/** Which room (folder) of src may import which others. Each may import from itself. */
const LIBRARY: Record<string, readonly string[]> = {
  base: [],
  core: ['base'],
  stores: ['base', 'core'],
  http: ['base', 'core'],
  // Of http, base64.
  leases: ['base', 'core', 'http'],
  // Of stores, the memory store: the limiter counts there unless the user says otherwise. Of http, digests.
  limits: ['base', 'core', 'http', 'leases', 'stores'],
  // Its stores use the parts that every store on a server has.
  'shared-limits': ['base', 'core', 'limits', 'stores'],
  idempotency: ['base', 'core'],
  // Its claims are in the tables of the PostgreSQL stores.
  transactions: ['base', 'core', 'stores', 'idempotency'],
  shadow: ['base', 'core', 'limits'],
  waiting: ['base', 'core', 'limits'],
  gate: ['base', 'core', 'http', 'limits', 'idempotency'],
  // Of stores, the memory store: an address is counted there unless the user says otherwise.
  address: ['base', 'core', 'limits', 'gate', 'stores'],
  adapters: ['base', 'core', 'http', 'gate', 'address'],
  // Of http, retry-after.
  client: ['base', 'core', 'http'],
  otel: ['base', 'core', 'gate'],
  testing: ['base', 'core', 'http', 'gate', 'limits', 'shared-limits', 'idempotency', 'stores'],
};

/** The same in the gateway. A file on top counts like a folder. */
const GATEWAY: Record<string, readonly string[]> = {
  base: [],
  config: ['base'],
  body: ['base'],
  exchange: ['base', 'config', 'body'],
  admission: ['base', 'config', 'body', 'exchange'],
  tls: ['base', 'config'],
  operations: ['base', 'config', 'exchange', 'tls'],
  traffic: ['base', 'exchange'],
  shadow: ['base', 'config', 'operations', 'store', 'traffic'],
  api: ['base', 'config', 'exchange', 'operations'],
  decisions: ['base', 'api', 'config', 'admission', 'exchange', 'server'],
  admin: [
    'base',
    'api',
    'config',
    'admission',
    'exchange',
    'tls',
    'operations',
    'server',
    'traffic',
    'store',
    'shadow',
  ],
  store: ['base', 'config', 'operations'],
  proxy: ['base', 'config', 'body', 'exchange'],
  server: ['base', 'exchange', 'operations', 'traffic', 'tls'],
  rules: ['base', 'config', 'exchange', 'admission', 'decisions', 'operations', 'traffic', 'shadow', 'proxy', 'server'],
  'process-parts': ['admin', 'config', 'operations', 'shadow', 'store', 'traffic'],
  gateway: [
    'base',
    'process-parts',
    'admin',
    'config',
    'body',
    'admission',
    'operations',
    'traffic',
    'store',
    'shadow',
    'proxy',
    'server',
    'rules',
    'tls',
    'decisions',
    'rate-limit-listener',
  ],
  'rate-limit-listener': ['api', 'config', 'decisions', 'operations', 'server'],
  workers: [
    'base',
    'admin',
    'admission',
    'config',
    'operations',
    'process-parts',
    'server',
    'gateway',
    'tls',
    'traffic',
  ],
  cli: ['base', 'config', 'operations', 'store', 'server', 'gateway', 'workers'],
};

/** The same in the console of the gateway. */
const CONSOLE: Record<string, readonly string[]> = {
  route: [],
  theme: [],
  session: ['route'],
  api: ['session'],
  parts: ['api', 'route'],
  banners: ['api', 'parts'],
  help: ['parts'],
  'offered-token': ['parts', 'session'],
  'lazy-page': ['parts'],
  account: ['api', 'limits', 'parts', 'route', 'session'],
  claims: ['api', 'parts', 'route', 'session'],
  limits: ['api', 'parts', 'route', 'session'],
  shadow: ['api', 'limits', 'parts', 'route'],
  system: ['api', 'parts'],
  pages: ['account', 'api', 'claims', 'limits', 'parts', 'route', 'session', 'shadow', 'system'],
  app: [
    'account',
    'api',
    'banners',
    'help',
    'lazy-page',
    'offered-token',
    'pages',
    'parts',
    'route',
    'session',
    'theme',
  ],
  main: ['app'],
};

/** They put everything together, so they may import every room. */
const EVERYTHING = ['server', 'service', 'background', 'metric-sources', 'cli', 'main', 'build-template'];

/** The same in the service. */
const SERVICE: Record<string, readonly string[]> = {
  domain: [],
  config: ['domain', 'security', 'secret-files'],
  'secret-files': [],
  security: ['domain'],
  observability: ['domain'],
  db: ['domain', 'security'],
  mail: ['domain', 'security'],
  providers: ['domain', 'db', 'mail', 'security'],
  // Only types, for authors of plug-ins.
  plugin: ['domain', 'mail', 'providers', 'security'],
  applications: ['domain', 'db'],
  keys: ['domain', 'db', 'scopes'],
  scopes: ['domain', 'db'],
  jobs: ['domain', 'db'],
  domains: ['domain', 'db', 'security', 'jobs'],
  webhooks: ['domain', 'db', 'security', 'jobs'],
  accounts: ['domain', 'db', 'security', 'scopes', 'webhooks'],
  links: ['domain', 'db', 'security', 'accounts', 'keys', 'scopes'],
  limits: ['domain', 'db', 'accounts'],
  people: ['domain', 'db', 'security'],
  journal: ['domain', 'db', 'security', 'mail', 'providers', 'accounts', 'webhooks', 'jobs'],
  // Its routes are HTTP: what a recipient of an email opens.
  tracking: ['domain', 'db', 'security', 'webhooks'],
  assets: [],
  version: [],
  rooms: [
    ...['tracking', 'webhooks', 'jobs', 'domain', 'config', 'security', 'mail', 'providers', 'observability'],
    ...['applications', 'keys', 'scopes', 'accounts', 'links', 'limits', 'journal', 'wizard', 'domains', 'people'],
  ],
  wizard: [
    ...['assets', 'domain', 'security', 'mail', 'providers', 'rooms', 'api', 'config'],
    ...['applications', 'keys', 'scopes', 'accounts', 'links', 'limits', 'domains'],
  ],
  // Its pages are made in the way of the wizard's.
  dashboard: [
    ...['assets', 'domain', 'security', 'rooms', 'api', 'config', 'wizard', 'people', 'mail'],
    ...['applications', 'keys', 'scopes', 'accounts', 'limits', 'providers', 'journal', 'webhooks', 'domains', 'jobs'],
  ],
  api: [
    ...['tracking', 'webhooks', 'domain', 'security', 'mail', 'providers', 'rooms', 'config', 'version'],
    ...['applications', 'keys', 'scopes', 'accounts', 'links', 'limits', 'journal', 'domains', 'observability'],
  ],
  ...Object.fromEntries(EVERYTHING.map((room) => [room, ['*']])),
};

interface House {
  /** Its folder in the repository. */
  readonly folder: string;
  /** Its rooms; absent if it has a test of its own for them, or none. */
  readonly rooms?: Rooms;
  /** The houses whose packages it may import, besides the library's. */
  readonly houses?: readonly string[];
  /** Whether it may import `headgate/internal`. */
  readonly internal?: boolean;
}

/** Every house enters the library by its published subpaths, and no house imports a file of another one. */
const HOUSES: Readonly<Record<string, House>> = {
  library: { folder: 'src', rooms: LIBRARY },
  simulate: { folder: 'packages/simulate/src', internal: true },
  gateway: {
    folder: 'apps/gateway/src',
    rooms: GATEWAY,
    houses: ['headgate-simulate', 'headgate-simulate/routes'],
    internal: true,
  },
  console: { folder: 'apps/gateway/src/console', rooms: CONSOLE },
  // Its own test has who may write SQL.
  service: { folder: 'apps/communication-api/src', rooms: SERVICE },
  testbed: { folder: 'packages/testbed/src' },
};

/** The most names that `headgate/internal` may export. Fewer is better: lower it whenever one goes. */
const MOST_INTERNAL = 42;

/** The most lines, those of the scripts in Lua and SQL included, and rooms of the library. */
const MOST_LINES = 42_090;
const MOST_ROOMS = 17;

/** Packages that a room of the library may use at run time. All others, frameworks included, may only be imported as types. */
const PACKAGES: Record<string, readonly string[]> = {
  stores: ['lru-cache'],
  // Bundled into the platform of the web.
  http: ['@noble/hashes/hmac.js', '@noble/hashes/sha2.js'],
  // Only h3 itself makes a response of what its handlers return. Error handlers ask for the class of an HTTP error.
  adapters: ['h3', '@nestjs/common', '@nestjs/core', 'hono/http-exception'],
  otel: ['@opentelemetry/api'],
};

/** Files of the library that may use Node's modules; all others run on every runtime. */
const ON_NODE = [
  'adapters/',
  'http/platform.ts',
  'shared-limits/stores/',
  'stores/postgres/',
  'stores/redis/',
  'stores/shared/store-tracer.ts',
];

/** Subpaths that need Node. All others run on every runtime. */
const FOR_NODE = ['./redis', './postgres', './file', './node', './express', './fastify', './koa', './nest'];

interface Import {
  readonly file: string;
  readonly specifier: string;
  readonly typeOnly: boolean;
}

const filesIn = (folder: string): readonly string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => !/\/(node_modules|dist)\//.test(file))
    // The console is a house in the gateway's.
    .filter((file) => folder.endsWith('/console') || !file.includes('/src/console/'));

/** Imports and exports of other modules, types included, also `import('…')`. */
const importsOf = (file: string): readonly Import[] => {
  const text = readFileSync(file, 'utf8');
  return [
    ...[...text.matchAll(/^(?:import|export)\s+(type\s)?(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm)].map(
      ([, type, specifier]) => ({ file, specifier: specifier as string, typeOnly: type !== undefined }),
    ),
    ...[...text.matchAll(/\bimport\('([^']+)'\)/g)].map(([, specifier]) => ({
      file,
      specifier: specifier as string,
      typeOnly: true,
    })),
  ];
};

/** A file on top of src only exports what users import from a subpath. */
const isDoor = (file: string): boolean => dirname(file) === SRC;
const files = filesIn('src');
const imports = files.flatMap(importsOf);

/** The first folder of the path, or the file if it is in no folder. */
const roomOf = (file: string, folder: string): string =>
  (relative(join(ROOT, folder), file).split('/')[0] as string).replace(/\.tsx?$/, '');
const show = ({ file, specifier }: Import): string => `${relative(ROOT, file)} imports ${specifier}`;
const isStyle = (specifier: string): boolean => specifier.endsWith('.css');
const targetOf = ({ file, specifier }: Import): string => resolve(dirname(file), specifier);

/** The circles of a graph, each as the path that leads back to its start. */
function circlesOf(nodes: readonly string[], next: (node: string) => readonly string[]): readonly string[] {
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (node: string, path: readonly string[]): void => {
    const at = path.indexOf(node);
    if (at >= 0) {
      circles.push([...path.slice(at), node].join(' > '));
      return;
    }
    if (done.has(node)) return;
    for (const target of next(node)) visit(target, [...path, node]);
    done.add(node);
  };
  for (const node of nodes) visit(node, []);
  return circles;
}

it('finds a circle', () => {
  const next: Record<string, string[]> = { a: ['b'], b: ['c'], c: ['b'], d: [] };
  expect(circlesOf(['a', 'd'], (node) => next[node] as string[])).toEqual(['b > c > b']);
});

describe.each(Object.entries(HOUSES))('%s', (name, { folder, rooms, houses = [], internal = false }) => {
  const own = filesIn(folder);
  const ownImports = own.flatMap(importsOf);
  const inside = ownImports.filter(({ specifier }) => specifier.startsWith('.') && !isStyle(specifier));
  const isRoomless = (file: string): boolean => name === 'library' && isDoor(file);

  it('has no circle of files, types included', () => {
    expect(own.length).toBeGreaterThan(3);
    const targets = new Map(own.map((file) => [file, inside.filter((one) => one.file === file).map(targetOf)]));
    const circles = circlesOf(own, (file) => targets.get(file) ?? []);
    expect(circles.map((circle) => circle.replaceAll(`${ROOT}/`, ''))).toEqual([]);
  });

  it('imports no file of another house', () => {
    // The console uses the types of the answers that the gateway gives.
    const mayLeave = ({ typeOnly }: Import): boolean => name === 'console' && typeOnly;
    const wrong = inside.filter(
      (one) => relative(join(ROOT, folder), targetOf(one)).startsWith('..') && !mayLeave(one),
    );
    expect(wrong.map(show)).toEqual([]);
  });

  it('enters the library and other houses by what they publish', () => {
    const subpaths = Object.keys(SUBPATHS).map((subpath) => subpath.replace('.', 'headgate'));
    const allowed = [...subpaths.filter((subpath) => internal || subpath !== 'headgate/internal'), ...houses];
    const wrong = ownImports.filter(({ specifier }) => /^headgate\b/.test(specifier) && !allowed.includes(specifier));
    const mayUseItself = name === 'testbed' || name === 'library';
    expect(
      wrong.filter(({ specifier }) => !mayUseItself || !specifier.startsWith('headgate-testbed')).map(show),
    ).toEqual([]);
  });

  it.runIf(rooms !== undefined)('each room imports only from the rooms that it may', () => {
    const may = rooms as Rooms;
    const wrong = inside
      .filter((one) => !isRoomless(one.file) && !relative(join(ROOT, folder), targetOf(one)).startsWith('..'))
      .filter((one) => {
        const [from, to] = [roomOf(one.file, folder), roomOf(targetOf(one), folder)];
        return from !== to && !may[from]?.some((room) => room === to || room === '*');
      });
    expect(wrong.map(show)).toEqual([]);
    const found = own.filter((file) => !isRoomless(file)).map((file) => roomOf(file, folder));
    expect(new Set(found)).toEqual(new Set(Object.keys(may)));
  });

  it('has no circle of rooms', () => {
    const next = new Map<string, Set<string>>();
    for (const one of inside) {
      if (isRoomless(one.file)) continue;
      const [from, to] = [roomOf(one.file, folder), roomOf(targetOf(one), folder)];
      if (from !== to && to !== '..') next.set(from, (next.get(from) ?? new Set()).add(to));
    }
    expect(circlesOf([...next.keys()], (room) => [...(next.get(room) ?? [])])).toEqual([]);
  });

  it('has kebab-case file names and no default exports', () => {
    const paths = own.map((file) => relative(join(ROOT, folder), file));
    expect(paths.filter((file) => !/^[a-z0-9/-]+\.tsx?$/.test(file))).toEqual([]);
    const exporting = own.filter((file) => /^export default/m.test(readFileSync(file, 'utf8')));
    expect(exporting.filter((file) => !file.endsWith('second-attempts.ts'))).toEqual([]);
  });
});

/** The folders of each house beside its source, and the packages of other houses whose parts they may share. */
const BESIDE_SOURCE = ['', 'apps/gateway', 'apps/communication-api', 'packages/simulate', 'packages/bench']
  .flatMap((house) => ['test', 'bench', 'scripts'].map((folder) => join(house, folder)))
  .filter((folder) => existsSync(join(ROOT, folder)));

it.each(BESIDE_SOURCE)('%s imports no file of another house', (folder) => {
  const house = join(ROOT, dirname(folder));
  const scripts = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.mjs') && !/(^|\/)(node_modules|dist|\.run)\//.test(file))
    .map((file) => join(ROOT, folder, file));
  const all = [...filesIn(folder), ...scripts];
  expect(all.length).toBeGreaterThan(0);
  const wrong = all
    .flatMap(importsOf)
    .filter(({ specifier }) => specifier.startsWith('.'))
    // The tools of the repository are for every house.
    .filter((one) => !targetOf(one).startsWith(join(ROOT, 'scripts/')))
    .filter((one) => {
      const path = relative(house, targetOf(one));
      return path.startsWith('..') || /^(apps|packages)\//.test(path);
    });
  expect(wrong.map(show)).toEqual([]);
});

describe('library', () => {
  it('is small', () => {
    const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) =>
      /\.(ts|lua|sql)$/.test(file),
    );
    const linesOf = (file: string): number => readFileSync(join(SRC, file), 'utf8').split('\n').length - 1;
    const lines = sources.reduce((sum, file) => sum + linesOf(file), 0);
    expect(lines).toBeLessThanOrEqual(MOST_LINES);
    expect(Object.keys(LIBRARY).length).toBeLessThanOrEqual(MOST_ROOMS);
  });

  it('headgate/internal has few names', () => {
    const text = readFileSync(join(SRC, 'internal.ts'), 'utf8');
    const names = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = '']) =>
      list.split(',').filter((one) => one.trim() !== ''),
    );
    expect(names.length).toBeGreaterThan(10);
    expect(names.length).toBeLessThanOrEqual(MOST_INTERNAL);
  });

  it('packages are imported at run time only in the folders that may use them', () => {
    const wrong = imports
      .filter(({ specifier, typeOnly }) => !specifier.startsWith('.') && !typeOnly)
      .filter(({ file, specifier }) => {
        const isBuiltin = specifier.startsWith('node:') || builtinModules.includes(specifier);
        return isBuiltin
          ? !ON_NODE.some((place) => relative(SRC, file).startsWith(place))
          : !PACKAGES[roomOf(file, 'src')]?.includes(specifier);
      });
    expect(wrong.map(show)).toEqual([]);
  });

  it('a subpath that is not for Node uses no Node module except in http/platform.ts, which has a twin for the web', () => {
    const sources = Object.entries(SUBPATHS).filter(([subpath]) => !FOR_NODE.includes(subpath));
    const entries = [...sources.map(([, source]) => relative('src', source)), 'http/platform-web.ts'];
    const reached = new Set(entries.map((name) => join(SRC, name)));
    for (const file of reached) {
      for (const { specifier } of imports.filter((one) => one.file === file && !one.typeOnly)) {
        if (specifier.startsWith('.')) reached.add(resolve(dirname(file), specifier));
      }
    }
    const onNode = imports.filter(({ file, specifier, typeOnly }) => {
      return reached.has(file) && !typeOnly && specifier.startsWith('node:');
    });
    expect(reached.size).toBeGreaterThan(60);
    expect([...new Set(onNode.map(({ file }) => relative(SRC, file)))]).toEqual(['http/platform.ts']);
  });

  it('the library reads the time and sets timers only in core/clock.ts and in the files listed here', () => {
    const readers = files
      .filter((file) =>
        [
          'base',
          'core',
          'stores',
          'http',
          'gate',
          'adapters',
          'leases',
          'limits',
          'shared-limits',
          'shadow',
          'idempotency',
          'otel',
        ].includes(roomOf(file, 'src')),
      )
      .filter((file) =>
        /Date\.now\(|new Date\(|performance\.now\(|setTimeout\(|setInterval\(/.test(readFileSync(file, 'utf8')),
      );
    expect(readers.map((file) => relative(SRC, file)).sort()).toEqual([
      // How long a slice of work lasts, and a pause where there is no setImmediate.
      'base/slices.ts',
      'core/clock.ts',
      // Leases are renewed, and duplicates wait. It is a port, so a test can replace it with a fake clock.
      'core/timers.ts',
      // A body that sends nothing for `idleMs` is given up.
      'http/body-limits.ts',
      // A pause in the work on a long body, where there is no setImmediate.
      'http/platform-web.ts',
      // How long a call of a store takes.
      'otel/store-telemetry.ts',
      // A call to the store of a candidate has a deadline.
      'shadow/calls.ts',
      // Waits until the processes obey a change.
      'shared-limits/instances.ts',
      // The store of adjustments is read again and again.
      'shared-limits/poll.ts',
      // A process lets others come first that want to change limits too.
      'shared-limits/replica.ts',
      // A part of a file whose writer died is removed an hour later.
      'shared-limits/stores/state-file.ts',
      // A connection that does not answer is closed.
      'stores/postgres/pg.ts',
      // A page of a scan that a failover breaks off is asked for again, a moment later.
      'stores/redis/claim-scan.ts',
      // A claim that ends within 10 ms is not noted.
      'stores/redis/unresolved-claims.ts',
      // Calls to a server have a deadline.
      'stores/shared/circuit-breaker.ts',
      // Large values wait for their turn, up to a bound.
      'stores/shared/large-values.ts',
      // Waits for a server at start: the time between two attempts.
      'stores/shared/ready.ts',
    ]);
  });

  it('stores/shared does not depend on Redis', () => {
    const wrong = imports.filter(
      ({ file, specifier }) => relative(SRC, file).startsWith('stores/shared/') && specifier.includes('redis'),
    );
    expect(wrong.map(show)).toEqual([]);
  });
});
