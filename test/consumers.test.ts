import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { install, nameOf, type Packed, pack, ROOT, subpaths } from './support/package.ts';

const run = promisify(execFile);

/** The faults that a compiler reports in a project and in our types. */
type Check = (folder: string) => Promise<readonly string[]>;

const COMPILERS: Readonly<Record<string, Check>> = {
  '5.9': checkInThread('typescript-5.9'),
  '6': checkInThread('typescript'),
  '7': checkByCommand('typescript-7'),
};

/** How a project finds modules. NodeNext decides by the name of a file whether it is ESM or CommonJS. */
const RESOLUTIONS = {
  'NodeNext, ESM and CommonJS': { extensions: ['mts', 'cts'], module: 'NodeNext', moduleResolution: 'NodeNext' },
  'a bundler': { extensions: ['ts'], module: 'ESNext', moduleResolution: 'Bundler' },
  // The default of `module: commonjs` until TypeScript 6: it reads `typesVersions`, and no `exports`.
  'node10, CommonJS': { extensions: ['ts'], module: 'CommonJS', moduleResolution: 'node10', esModuleInterop: true },
} as const;
type Resolution = keyof typeof RESOLUTIONS;

interface Consumer {
  /** What is installed beside headgate; nothing else is. */
  readonly beside: readonly string[];
  readonly options: { readonly types: readonly string[]; readonly [option: string]: unknown };
  /** The types of third parties take long, so only the fastest compiler checks this one for a bundler. */
  readonly heavy?: boolean;
}

const WEB = { lib: ['ES2022', 'DOM', 'DOM.Iterable'], types: [] };
const NODE = { types: ['node'] };
const DECORATED = { ...NODE, experimentalDecorators: true, emitDecoratorMetadata: true };
const NEST = ['@nestjs/common', '@types/node', 'reflect-metadata', 'rxjs'];

/**
 * Each file of test/consumers. At night, a framework's program has no other framework, so that no adapter's types can
 * need a package that its users do not have. A change only waits for a look at the names of the packages.
 */
const CONSUMERS: Readonly<Record<string, Consumer>> = {
  portable: { beside: [], options: { lib: ['ES2022', 'WebWorker'], types: [] } },
  hono: { beside: ['hono'], options: WEB },
  h3: { beside: ['h3'], options: WEB },
  elysia: { beside: ['elysia'], options: WEB, heavy: true },
  node: { beside: ['@types/node'], options: NODE },
  express: { beside: ['@types/express', '@types/node', 'express'], options: NODE, heavy: true },
  fastify: { beside: ['@types/node', 'fastify'], options: NODE, heavy: true },
  koa: { beside: ['@types/koa', '@types/node', 'koa'], options: NODE, heavy: true },
  nest: { beside: [...NEST, '@types/express', 'express'], options: DECORATED, heavy: true },
  'nest-fastify': { beside: [...NEST, 'fastify'], options: DECORATED, heavy: true },
  postgres: {
    beside: ['@electric-sql/pglite', '@types/node', '@types/pg', 'pg', 'postgres'],
    options: NODE,
    heavy: true,
  },
  redis: { beside: ['@types/node', 'ioredis', 'redis'], options: NODE, heavy: true },
  otel: { beside: ['@opentelemetry/api'], options: WEB },
  testing: { beside: ['@types/node', 'fast-check'], options: NODE, heavy: true },
};

/** What one compiler checks at once. */
interface Project extends Consumer {
  /** Names of files in test/consumers. */
  readonly programs: readonly string[];
}

/** Consumers with the same globals in one project, because most of the time goes into the types of Node and of the web. */
function together(types: readonly string[]): Project {
  const consumers = Object.entries(CONSUMERS).filter(
    ([name, { options }]) => name !== 'portable' && options.types.join() === types.join(),
  );
  return {
    programs: consumers.map(([name]) => name),
    beside: [...new Set(consumers.flatMap(([, { beside }]) => beside))],
    options: Object.assign({}, ...consumers.map(([, { options }]) => options)),
  };
}

const alone = (name: string): [string, Project] => [name, { programs: [name], ...(CONSUMERS[name] as Consumer) }];

const PROJECTS: readonly [string, Project][] = NIGHTLY
  ? Object.keys(CONSUMERS).map(alone)
  : [alone('portable'), ['programs for the web', together(WEB.types)], ['programs for Node', together(NODE.types)]];

let packed: Packed;

beforeAll(() => {
  packed = pack();
});

afterAll(() => rmSync(packed.folder, { recursive: true, force: true }));

const sourceOf = (program: string): string => join(ROOT, `test/consumers/${program}.ts`);

function createProject(name: string, { programs, beside, options }: Project, resolution: Resolution): string {
  const { extensions, ...how } = RESOLUTIONS[resolution];
  const folder = install(packed, `${name}-${how.module}`, beside);
  for (const extension of extensions) {
    for (const program of programs) copyFileSync(sourceOf(program), join(folder, `${program}.${extension}`));
  }
  const strict = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    isolatedModules: true,
  };
  const compilerOptions = { target: 'ES2022', noEmit: true, skipLibCheck: false, ...strict, ...how, ...options };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.*ts'] }));
  return folder;
}

/** By the compiler's API, in one thread for all projects. */
function checkInThread(compiler: string): Check {
  let thread: Worker | undefined;
  return async (folder) => {
    if (thread === undefined) {
      thread = new Worker(new URL('./support/type-checker.mjs', import.meta.url), { workerData: compiler });
      thread.unref();
    }
    thread.postMessage(folder);
    const [faults] = await once(thread, 'message');
    return faults;
  };
}

/** By the command of a compiler that has no API. Faults in the types of third parties are left out. */
function checkByCommand(compiler: string): Check {
  return async (folder) => {
    // Several threads would each find out the same types again, and the other tests use the cores.
    const options = ['--singleThreaded', '--pretty', 'false'];
    const args = [join(ROOT, 'node_modules', compiler, 'bin/tsc'), '-p', folder, ...options];
    // Collecting garbage takes a third of the time of a compiler that ends after a second.
    const env = { ...process.env, GOGC: 'off' };
    const { stdout } = await run(process.execPath, args, { cwd: folder, env }).catch((error: { stdout?: string }) => {
      // With faults, it exits with an error and its output. Without output, it did not run.
      if (!error.stdout) throw error;
      return { stdout: error.stdout };
    });
    return stdout.split('\n').filter((line) => /^\S/.test(line) && !/node_modules\/(?!headgate\/)/.test(line));
  };
}

const RESOLUTION_NAMES = Object.keys(RESOLUTIONS) as Resolution[];

/** A change waits for the fastest compiler and the strictest resolution only, and for all of them in one program. */
const resolutionsOf = (name: string) =>
  NIGHTLY || name === 'portable' ? RESOLUTION_NAMES : RESOLUTION_NAMES.slice(0, 1);

/** The oldest compiler is the last one that knows `node10` without calling it deprecated. */
function compilersFor(resolution: Resolution, { heavy }: Consumer) {
  const isShort = heavy === true && resolution === 'a bundler';
  return Object.entries(COMPILERS).filter(([version]) =>
    resolution === 'node10, CommonJS' ? version === '5.9' : version === '7' || (NIGHTLY && !isShort),
  );
}

describe.each(PROJECTS)('%s', (name, project) => {
  describe.each(resolutionsOf(name))('%s', (resolution) => {
    let folder: string;
    beforeAll(() => {
      folder = createProject(name, project, resolution);
    });

    it.each(compilersFor(resolution, project))(
      'TypeScript %s',
      async (_, check) => {
        expect(await check(folder)).toEqual([]);
      },
      120_000,
    );
  });
});

/** The packages that the types of a subpath name, in all files that they consist of. */
function packagesOf(subpath: string): string[] {
  const packages = new Set<string>();
  const files = subpaths
    .filter(([each]) => nameOf(each) === subpath)
    .flatMap(([, conditions]) => Object.values(conditions).map(({ types }) => join(ROOT, types)));
  expect(files).toHaveLength(2);
  for (const file of new Set(files)) {
    const source = readFileSync(file, 'utf8');
    for (const [, module = ''] of source.matchAll(/\b(?:from|import|import\(|module|types=) ?['"]([^'"\s]+)['"]/g)) {
      if (module.startsWith('.')) files.push(join(file, '..', module.replace(/\.(c?)js$/, '.d.$1ts')));
      else packages.add(module.startsWith('node:') ? '@types/node' : module);
    }
  }
  return [...packages];
}

it.each(Object.entries(CONSUMERS))('the types that %s uses name no package but those beside it', (name, { beside }) => {
  const used = [...readFileSync(sourceOf(name), 'utf8').matchAll(/from '(headgate[^']*)';/g)];
  expect(used).not.toEqual([]);
  const named = used.flatMap(([, subpath = '']) => packagesOf(subpath));
  expect(named.filter((each) => !beside.includes(each))).toEqual([]);
});

it('every subpath is used by one of these programs', () => {
  const sources = Object.keys(CONSUMERS).map((name) => readFileSync(sourceOf(name), 'utf8'));
  // Only the houses of this repository use `./internal`.
  const offered = subpaths.filter(([subpath]) => subpath !== './internal');
  const unused = offered.filter(([subpath]) => !sources.join('').includes(`from '${nameOf(subpath)}';`));
  expect(unused).toEqual([]);
});
