import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig, type Plugin, type UserWorkspaceConfig } from 'vitest/config';
import { projects as serviceProjects } from './apps/communication-api/vitest.config.ts';
import { projects as postgresStoreProjects } from './apps/postgres-store/vitest.config.ts';
import { CONSOLE_MODULE, consoleModule } from './scripts/console.mjs';
import { luaAsText } from './scripts/lua.mjs';
import { LongFilesFirst } from './test/support/long-files-first.ts';

/** Frameworks, each behind a real server of its own. */
const ADAPTERS = ['test/adapters/**/*.test.ts'];

/** Some of them, behind Hono's server, which replaces the global `Response` when it is loaded. */
const WEB = [
  'test/adapters/{elysia,fetch,h3,hono,own-answers,per-address}.test.ts',
  'test/adapters/web/passed-on.test.ts',
];

/** The benchmarks' own parts. */
const BENCH = ['test/bench/*.test.ts'];

/** The built package: the process, how it is deployed, and what users install. */
const BUILT = ['test/{deploy,gateway/process}/*.test.ts', 'test/{consumers,examples,package,tree-shaking}.test.ts'];

/** The gateway inside the test's own process. */
const GATEWAY = ['test/gateway/**/*.test.ts'];

/** Some of them, which mock modules. */
const GATEWAY_MOCKS = ['test/gateway/body/temporary-file.test.ts', 'test/gateway/cli/{main,serve}.test.ts'];

/** The console in Chromium, behind a gateway. */
const CONSOLE = ['test/console/*.test.ts'];

/** Stores on real Redis servers. */
const REDIS = [
  'test/address/redis.test.ts',
  'test/gateway/store/*.test.ts',
  'test/idempotency/redis.test.ts',
  'test/shared-limits/{conformance,redis,redis-store,redis-whole}.test.ts',
  'test/stores/{conformance,redis}/**/*.test.ts',
  'test/nightly/*.test.ts',
  'test/waiting/redis.test.ts',
];

/** Random inputs, judged by a model: many runs per test. */
const RANDOM = ['test/**/*.property.test.ts'];

/** Servers that are killed and frozen, against short deadlines: last and one by one, so that a busy machine is not late. */
const REDIS_FAULTS = ['test/stores/redis/{bound,*fault*}.test.ts'];

const REDIS_SERVERS = 'test/support/redis-servers.ts';

/**
 * Files of a project share a few processes, one after the other, so a test may not leave anything behind. An isolated project gives
 * each file a process of its own: for files that change their process for good. Projects run in the order of their names.
 */
const project = (name: string, include: string[], { exclude = [], ...rest }: UserWorkspaceConfig['test'] = {}) => ({
  extends: true as const,
  test: { name, include, exclude: [...configDefaults.exclude, ...exclude], isolate: false, ...rest },
});

/** For tests of processes, browsers and servers: `second-attempts.ts` names those that needed it. */
const SECOND_ATTEMPT = { retry: 1 };

/**
 * Apps, `built` and `bench` use the built library or what other projects test, so they say nothing about the coverage of
 * `src`. V8's counting and the report of the service would add 40 % to the CPU time of `service-pure`.
 */
const withoutCoverage: Plugin = {
  name: 'without-coverage',
  configureVitest: ({ project }) => {
    project.config.coverage = { ...project.config.coverage, enabled: false };
  },
};

export default defineConfig({
  plugins: [
    {
      name: 'console',
      enforce: 'pre',
      resolveId: (id) => (id === CONSOLE_MODULE ? `\0${id}` : undefined),
      load: (id) => (id === `\0${CONSOLE_MODULE}` ? consoleModule() : undefined),
    },
    luaAsText,
  ],
  test: {
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // A busy machine may take longer than the default of one second.
    expect: { poll: { timeout: 10_000 } },
    slowTestThreshold: 3_000,
    setupFiles: ['test/support/setup.ts'],
    reporters: ['default', 'test/support/second-attempts.ts'],
    // More than there are cores: many tests wait for a timer, a process or a server.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongFilesFirst },
    projects: [
      project('adapters', ADAPTERS, { exclude: WEB, setupFiles: ['test/support/same-globals.ts'] }),
      { ...project('bench', BENCH), plugins: [withoutCoverage] },
      {
        ...project('built', BUILT, {
          ...SECOND_ATTEMPT,
          globalSetup: ['test/support/build.ts', REDIS_SERVERS],
          setupFiles: ['test/support/built.ts'],
        }),
        plugins: [withoutCoverage],
      },
      project('console', CONSOLE, {
        ...SECOND_ATTEMPT,
        globalSetup: [REDIS_SERVERS, 'test/console/support/browser.ts'],
        sequence: { groupOrder: 3 },
      }),
      project('gateway', GATEWAY, { ...SECOND_ATTEMPT, exclude: [...BUILT, ...GATEWAY_MOCKS, ...REDIS] }),
      project('gateway-mocks', GATEWAY_MOCKS, { isolate: true }),
      project('random', RANDOM, { exclude: [...ADAPTERS, ...BENCH, ...GATEWAY, ...REDIS], testTimeout: 300_000 }),
      project('redis', REDIS, { exclude: REDIS_FAULTS, globalSetup: REDIS_SERVERS }),
      project('redis-faults', REDIS_FAULTS, {
        ...SECOND_ATTEMPT,
        globalSetup: REDIS_SERVERS,
        maxWorkers: 2,
        sequence: { groupOrder: 1 },
      }),
      project('unit', ['test/**/*.test.ts'], {
        exclude: [...ADAPTERS, ...BENCH, ...BUILT, ...CONSOLE, ...GATEWAY, ...RANDOM, ...REDIS],
      }),
      project('web', WEB, { isolate: true }),
      ...serviceProjects.map(({ test, ...service }) => ({
        ...service,
        plugins: [withoutCoverage],
        test: { ...SECOND_ATTEMPT, ...test },
      })),
      ...postgresStoreProjects.map((store) => ({ ...store, plugins: [withoutCoverage] })),
    ],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      // It runs in Chromium, where this process does not see which lines run.
      exclude: ['src/console/**'],
      reportOnFailure: true,
      thresholds: { 'src/**': { branches: 90, lines: 90 }, 'src/core/**': { branches: 100, lines: 100 } },
      reporter: ['text-summary', 'json-summary', 'html'],
    },
  },
});
