import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SUBPATHS } from '../scripts/subpaths.mjs';

const SRC = resolve(import.meta.dirname, '../src');

/** Which room (folder) of src may import which others. Each may import from itself. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  base: [],
  core: ['base'],
  stores: ['base', 'core'],
  http: ['base', 'core'],
  limits: ['base', 'core'],
  // Its stores use the parts that every store on a server has.
  'shared-limits': ['base', 'core', 'limits', 'stores'],
  idempotency: ['base', 'core'],
  shadow: ['base', 'core', 'limits'],
  // Of idempotency, the port of timers.
  waiting: ['base', 'core', 'limits', 'idempotency'],
  gate: ['base', 'core', 'http', 'limits', 'idempotency'],
  // Of stores, the memory store: an address is counted there unless the user says otherwise.
  address: ['base', 'core', 'limits', 'gate', 'stores'],
  adapters: ['base', 'core', 'http', 'gate', 'address'],
  client: ['base', 'core'],
  otel: ['base', 'core', 'gate'],
  simulate: ['base', 'core', 'http', 'limits', 'stores'],
  testing: ['base', 'core', 'http', 'gate', 'limits', 'shared-limits', 'idempotency', 'stores'],
  gateway: [
    'base',
    'core',
    'address',
    'stores',
    'http',
    'limits',
    'shared-limits',
    'shadow',
    'idempotency',
    'gate',
    'otel',
    'simulate',
  ],
  // Types only, those of the answers: it runs in a browser.
  console: ['gateway'],
};

/** The same inside `gateway`. The file `gateway.ts` counts like a folder. */
const GATEWAY_MAY_IMPORT: Record<string, readonly string[]> = {
  config: [],
  body: [],
  exchange: ['config', 'body'],
  admission: ['config', 'body', 'exchange'],
  tls: ['config'],
  operations: ['config', 'exchange', 'tls'],
  traffic: ['exchange'],
  shadow: ['config', 'operations', 'store', 'traffic'],
  admin: ['config', 'admission', 'exchange', 'tls', 'operations', 'traffic', 'store', 'shadow'],
  store: ['config', 'operations'],
  proxy: ['config', 'body', 'exchange'],
  server: ['exchange', 'operations', 'traffic', 'tls'],
  rules: ['config', 'exchange', 'admission', 'operations', 'traffic', 'shadow', 'proxy', 'server'],
  gateway: [
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
  ],
  workers: ['admin', 'config', 'operations', 'server', 'gateway', 'tls'],
  cli: ['config', 'operations', 'store', 'server', 'gateway', 'workers'],
};

/** The same inside `console`. */
const CONSOLE_MAY_IMPORT: Record<string, readonly string[]> = {
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

const HOUSES = { gateway: GATEWAY_MAY_IMPORT, console: CONSOLE_MAY_IMPORT };

/** Packages that a folder may use at run time. All others, frameworks included, may only be imported as types. Node's own modules: see below. */
const PACKAGES: Record<string, readonly string[]> = {
  stores: ['lru-cache'],
  // Bundled into the platform of the web.
  http: ['@noble/hashes/hmac.js', '@noble/hashes/sha2.js'],
  // Only h3 itself makes a response of what its handlers return, and Nest logs every error that is not of its own class.
  adapters: ['h3', '@nestjs/common'],
  otel: ['@opentelemetry/api'],
  gateway: ['#console', '@opentelemetry/api', 'ioredis', 'pino', 'prom-client', 'zod'],
  console: ['@preact/signals', 'preact', 'preact/hooks', 'uplot/dist/uPlot.min.css'],
};

/** Files that may use Node's modules; all others run on every runtime. */
const ON_NODE = [
  'adapters/',
  'gateway/',
  'file.ts',
  'http/platform.ts',
  'redis.ts',
  'shared-limits/stores/',
  'stores/redis/',
];

/** Subpaths that need Node. All others run on every runtime. */
const FOR_NODE = ['./redis', './file', './node', './express', './fastify', './koa', './nest'];

interface Import {
  readonly file: string;
  readonly specifier: string;
  readonly typeOnly: boolean;
}

const files = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
  .map((entry) => join(entry.parentPath, entry.name));

const imports: Import[] = files.flatMap((file) =>
  [...readFileSync(file, 'utf8').matchAll(/^(?:import|export)\s+(type\s)?(?:[^'";]*?\sfrom\s+)?'([^']+)'/gm)].map(
    ([, type, specifier]) => ({ file, specifier: specifier as string, typeOnly: type !== undefined }),
  ),
);

/** A file on top of src only exports what users import from a subpath. */
const isDoor = (file: string): boolean => dirname(file) === SRC;

/** The first folder of the path, or the file if it is in no folder. */
const roomOf = (file: string, house = SRC): string =>
  (relative(house, file).split('/')[0] as string).replace(/\.tsx?$/, '');
const show = ({ file, specifier }: Import): string => `${relative(SRC, file)} imports ${specifier}`;

describe('src', () => {
  it('has files and imports, and a rule for each folder', () => {
    expect(files.length).toBeGreaterThan(20);
    expect(imports.length).toBeGreaterThan(files.length);
    expect(new Set(files.filter((file) => !isDoor(file)).map((file) => roomOf(file)))).toEqual(
      new Set(Object.keys(MAY_IMPORT)),
    );
  });

  it('each folder imports only from the folders that it may', () => {
    const wrong = imports
      .filter(({ file, specifier }) => specifier.startsWith('.') && !isDoor(file))
      .filter(({ file, specifier }) => {
        const [from, to] = [roomOf(file), roomOf(resolve(dirname(file), specifier))];
        return from !== to && !MAY_IMPORT[from]?.includes(to);
      });
    expect(wrong.map(show)).toEqual([]);
  });

  it.each(Object.entries(HOUSES))(
    'each folder of %s imports only from those of its folders that it may',
    (name, may) => {
      const house = join(SRC, name);
      const isInside = (file: string): boolean => file.startsWith(`${house}/`);
      const wrong = imports
        .map((one) => ({ ...one, target: resolve(dirname(one.file), one.specifier) }))
        .filter(({ file, specifier, target }) => specifier.startsWith('.') && isInside(file) && isInside(target))
        .filter(({ specifier }) => !specifier.endsWith('.css'))
        .filter(({ file, target }) => {
          const [from, to] = [roomOf(file, house), roomOf(target, house)];
          return from !== to && !may[from]?.includes(to);
        });
      expect(wrong.map(show)).toEqual([]);
      const rooms = files.filter(isInside).map((file) => roomOf(file, house));
      expect(new Set(rooms)).toEqual(new Set(Object.keys(may)));
    },
  );

  it('the console takes nothing from the gateway but types', () => {
    const wrong = imports.filter(
      ({ file, specifier, typeOnly }) => roomOf(file) === 'console' && specifier.startsWith('../../') && !typeOnly,
    );
    expect(wrong.map(show)).toEqual([]);
  });

  it('has no import circles, type-only ones included', () => {
    const targets = (file: string): string[] =>
      imports
        .filter((one) => one.file === file && one.specifier.startsWith('.'))
        .map(({ specifier }) => resolve(dirname(file), specifier));
    const done = new Set<string>();
    const circles: string[] = [];
    const visit = (file: string, path: readonly string[]): void => {
      const at = path.indexOf(file);
      if (at >= 0) {
        circles.push([...path.slice(at), file].map((each) => relative(SRC, each)).join(' > '));
        return;
      }
      if (done.has(file)) return;
      for (const target of targets(file)) visit(target, [...path, file]);
      done.add(file);
    };
    for (const file of files) visit(file, []);
    expect(circles).toEqual([]);
  });

  it('packages are imported at run time only in the folders that may use them', () => {
    const wrong = imports
      .filter(({ specifier, typeOnly }) => !specifier.startsWith('.') && !typeOnly)
      .filter(({ file, specifier }) => {
        const isBuiltin = specifier.startsWith('node:') || builtinModules.includes(specifier);
        return isBuiltin
          ? !ON_NODE.some((place) => relative(SRC, file).startsWith(place))
          : !PACKAGES[roomOf(file)]?.includes(specifier);
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
          'limits',
          'shared-limits',
          'shadow',
          'idempotency',
          'otel',
        ].includes(roomOf(file)),
      )
      .filter((file) =>
        /Date\.now\(|new Date\(|performance\.now\(|setTimeout\(|setInterval\(/.test(readFileSync(file, 'utf8')),
      );
    expect(readers.map((file) => relative(SRC, file)).sort()).toEqual([
      // How long a slice of work lasts, and a pause where there is no setImmediate.
      'base/slices.ts',
      'core/clock.ts',
      // A body that sends nothing for `idleMs` is given up.
      'http/body-limits.ts',
      // A pause in the work on a long body, where there is no setImmediate.
      'http/platform-web.ts',
      // Leases are renewed, and duplicates wait. It is a port, so a test can replace it with a fake clock.
      'idempotency/timers.ts',
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
      // A page of a scan that a failover breaks off is asked for again, a moment later.
      'stores/redis/claim-scan.ts',
      // Large values wait for their turn, up to a bound.
      'stores/redis/large-values.ts',
      // Calls to a server have a deadline.
      'stores/shared/circuit-breaker.ts',
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

  it('has kebab-case file names and no default exports', () => {
    expect(files.map((file) => relative(SRC, file)).filter((file) => !/^[a-z0-9/-]+\.tsx?$/.test(file))).toEqual([]);
    expect(files.filter((file) => /^export default/m.test(readFileSync(file, 'utf8')))).toEqual([]);
  });
});
