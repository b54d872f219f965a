import { MAX_WORKERS, NIGHTLY, projectOf, SECOND_ATTEMPT } from 'headgate-testbed/vitest-project';
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config';
import { CONSOLE_MODULE, consoleModule } from './scripts/console.mjs';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The kind of server of the store. Redis without it. */
    storeKind: 'redis' | 'postgres';
  }
}

/** The built process, and how it is deployed. */
const PROCESS = ['test/{deploy,process}/*.test.ts'];

/** The benchmarks' own parts change seldom, so the nightly run tests them. */
const BENCH = ['test/bench/*.test.ts'];

/** Files that mock modules. */
const MOCKS = ['test/body/temporary-file.test.ts', 'test/cli/{main,serve}.test.ts'];

/** The console in Chromium, behind a gateway. */
const CONSOLE = ['test/console/*.test.ts'];

/** Stores on real Redis servers. */
const REDIS = ['test/store/*.test.ts'];

/**
 * Tests that pass with any server as store. The nightly run repeats them with PostgreSQL. A change waits for one file,
 * which does a little of each.
 */
const ANY_SERVER = [
  'test/process/{idempotency-client-gone,idempotency-store-away,idempotency-two-gateways,per-application}.test.ts',
  'test/process/{idempotency-chaos.nightly,shared-limits,store-server,workers,workers-admin}.test.ts',
  'test/store/{admin-fleet,admin-limits,blocks,fleet-board,leases,shadow}.test.ts',
];
const POSTGRES = ['test/store/postgres*.test.ts'];

const REDIS_SERVERS = 'headgate-testbed/redis-servers';
const BUILDS = ['headgate-testbed/build', 'test/support/build.ts'];
const BUILT = 'test/support/built.ts';

/** The console as text, as the build bundles it. */
const consoleAsModule = {
  name: 'console',
  enforce: 'pre' as const,
  resolveId: (id: string) => (id === CONSOLE_MODULE ? `\0${id}` : undefined),
  load: (id: string) => (id === `\0${CONSOLE_MODULE}` ? consoleModule() : undefined),
};

const project = (name: string, include: string[], options: UserWorkspaceConfig['test'] = {}) => ({
  ...projectOf(import.meta.dirname, name, include, {
    ...SECOND_ATTEMPT,
    ...options,
    globalSetup: [...BUILDS, ...[options.globalSetup ?? []].flat()],
    setupFiles: [BUILT, ...[options.setupFiles ?? []].flat()],
  }),
  plugins: [consoleAsModule],
});

/** The projects of the gateway. They use the built library and the built package of simulations, as the process does. */
export const projects = [
  project('gateway', ['test/**/*.test.ts'], { exclude: [...BENCH, ...PROCESS, ...MOCKS, ...CONSOLE, ...REDIS] }),
  ...(NIGHTLY ? [projectOf(import.meta.dirname, 'gateway-bench', BENCH)] : []),
  project('gateway-console', CONSOLE, {
    globalSetup: [REDIS_SERVERS, 'headgate-testbed/browser'],
    sequence: { groupOrder: 3 },
  }),
  project('gateway-mocks', MOCKS, { isolate: true }),
  project('gateway-process', PROCESS, {
    globalSetup: [REDIS_SERVERS],
  }),
  project('gateway-postgres', [...POSTGRES, ...(NIGHTLY ? ANY_SERVER : [])], { provide: { storeKind: 'postgres' } }),
  project('gateway-redis', REDIS, { exclude: POSTGRES, globalSetup: [REDIS_SERVERS] }),
];

export default defineConfig({ test: { projects, maxWorkers: MAX_WORKERS } });
