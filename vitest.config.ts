import { MAX_WORKERS, NIGHTLY, projectOf, SECOND_ATTEMPT } from 'headgate-testbed/vitest-project';
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config';
import { projects as serviceProjects } from './apps/communication-api/vitest.config.ts';
import { projects as gatewayProjects } from './apps/gateway/vitest.config.ts';
import { projects as benchProjects } from './packages/bench/vitest.config.ts';
import { projects as simulateProjects } from './packages/simulate/vitest.config.ts';
import { scriptsAsText } from './scripts/scripts-as-text.mjs';
import { LongFilesFirst } from './test/support/long-files-first.ts';

/** Frameworks, each behind a real server of its own. */
const ADAPTERS = ['test/adapters/**/*.test.ts'];

/** Some of them, behind Hono's server, which replaces the global `Response` when it is loaded. */
const WEB = [
  'test/adapters/{elysia,fetch,h3,hono,own-answers,per-address}.test.ts',
  'test/adapters/web/{cooldown,passed-on}.test.ts',
];

/** The benchmarks' own parts, and the model of the claim protocol: they change seldom, so the nightly run tests them. */
const BENCH = ['test/bench/*.test.ts'];
const MODEL = ['test/model/*.test.ts'];

/** The built package, as users install it. */
const BUILT = [
  'test/{coming-from.nightly,consumers,examples,orms.nightly,package,tree-shaking,workers.nightly}.test.ts',
];

/** Stores on real Redis servers. */
const REDIS = [
  'test/address/redis.test.ts',
  'test/idempotency/redis.test.ts',
  'test/shared-limits/{conformance,redis,redis-store,redis-whole}.test.ts',
  'test/stores/{conformance,redis}/**/*.test.ts',
  'test/nightly/*.test.ts',
  'test/waiting/redis.test.ts',
];

/** Stores on real PostgreSQL servers. A folder or file is here if its name says so. */
const POSTGRES = ['test/stores/postgres/**/*.test.ts', 'test/**/*postgres*.test.ts'];

/** PostgreSQL servers that are killed and frozen, each of its own. */
const POSTGRES_FAULTS = ['test/stores/postgres/*fault*.test.ts'];

/** Random inputs, judged by a model: many runs per test. */
const RANDOM = ['test/**/*.property.test.ts'];

/** Servers that are killed and frozen, against short deadlines: after the others, so that a busy machine is not late. */
const REDIS_FAULTS = ['test/stores/redis/{bound,*fault*}*.test.ts'];

const REDIS_SERVERS = 'headgate-testbed/redis-servers';
const POSTGRES_SERVER = 'headgate-testbed/postgres-for-run';

const project = (name: string, include: string[], options: UserWorkspaceConfig['test'] = {}) => ({
  ...projectOf(import.meta.dirname, name, include, options),
  plugins: [scriptsAsText],
});

/** The projects of the library. */
const libraryProjects = [
  project('adapters', ADAPTERS, { exclude: WEB, setupFiles: ['test/support/same-globals.ts'] }),
  ...(NIGHTLY ? [project('bench', [...BENCH, ...MODEL])] : []),
  project('built', BUILT, {
    ...SECOND_ATTEMPT,
    globalSetup: ['headgate-testbed/build', REDIS_SERVERS, POSTGRES_SERVER],
    setupFiles: ['headgate-testbed/built'],
  }),
  project('postgres', POSTGRES, { ...SECOND_ATTEMPT, exclude: POSTGRES_FAULTS, globalSetup: POSTGRES_SERVER }),
  project('postgres-faults', POSTGRES_FAULTS, { ...SECOND_ATTEMPT, sequence: { groupOrder: 1 } }),
  project('random', RANDOM, { exclude: [...ADAPTERS, ...BENCH, ...POSTGRES, ...REDIS], testTimeout: 300_000 }),
  project('redis', REDIS, { exclude: REDIS_FAULTS, globalSetup: REDIS_SERVERS }),
  project('redis-faults', REDIS_FAULTS, {
    ...SECOND_ATTEMPT,
    globalSetup: REDIS_SERVERS,
    sequence: { groupOrder: 1 },
  }),
  project('unit', ['test/**/*.test.ts'], {
    exclude: [...ADAPTERS, ...BENCH, ...BUILT, ...MODEL, ...POSTGRES, ...RANDOM, ...REDIS],
  }),
  project('web', WEB, { isolate: true }),
];

/** The other houses. Each has a config of its own, for `npm test -w`. */
const houses = [...benchProjects, ...simulateProjects, ...gatewayProjects, ...serviceProjects];

export default defineConfig({
  test: {
    reporters: ['default', 'packages/testbed/src/second-attempts.ts'],
    maxWorkers: MAX_WORKERS,
    sequence: { sequencer: LongFilesFirst },
    // Projects run in the order of their groups, then of their names.
    projects: [...libraryProjects, ...houses],
    coverage: {
      provider: 'v8',
      include: ['src/**'],
      reportOnFailure: true,
      thresholds: { 'src/**': { branches: 90, lines: 90 }, 'src/core/**': { branches: 100, lines: 100 } },
      reporter: ['text-summary', 'json-summary', 'html'],
    },
  },
});
