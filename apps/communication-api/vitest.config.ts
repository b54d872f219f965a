import { availableParallelism } from 'node:os';
import { MAX_WORKERS, NIGHTLY, projectOf, SECOND_ATTEMPT } from 'headgate-testbed/vitest-project';
import { defineConfig, type UserWorkspaceConfig } from 'vitest/config';

/** The built service, as a process. */
const PROCESS = ['test/process/**/*.test.ts'];

/** Tests of stores by their operations, which run once more on a PostgreSQL server: those with locks, races and tenants. */
const STORES = [
  'test/api/{keys,limits,links}.test.ts',
  'test/api/emails/send.test.ts',
  'test/dashboard/members.test.ts',
  ...(NIGHTLY
    ? [
        'test/api/{account-health,accounts,domains,scopes}.test.ts',
        'test/dashboard/{emails,keys,limits,second-factor,sign-in,webhooks}.test.ts',
      ]
    : []),
];

/** Functions without a database, a server or anything else that outlives a file. */
const PURE = [
  'test/{architecture,config,secret-files}.test.ts',
  'test/cli/{banner,command-line}.test.ts',
  'test/deploy/*.test.ts',
  'test/{docs,domain,mail,observability}/*.test.ts',
  'test/hostile/answers.test.ts',
  'test/jobs/turns.test.ts',
  'test/journal/{retention-times,sent-copies}.test.ts',
  'test/providers/outlook/{errors,graph-contract}.test.ts',
  'test/security/{addresses,envelope,passwords,totp}.test.ts',
  'test/tracking/{tracked-html,tracking-tokens,visitor}.test.ts',
];

/** The benchmarks' own parts change seldom, so the nightly run tests them. */
const BENCH = ['test/bench/*.test.ts'];

/** Pages in Chromium. */
const BROWSER = ['test/browser/**/*.test.{ts,tsx}'];

/** Servers that flood the test's process, against a deadline. */
const FLOODS = ['test/hostile/mail-servers.test.ts'];

const BUILDS = ['headgate-testbed/build', 'test/support/build.ts'];
const POSTGRES = 'test/support/postgres-servers.ts';
const CERTIFICATE = 'test/support/test-certificate.ts';
const CONTRACT = 'test/support/contract-coverage.ts';

/**
 * Of V8: WebAssembly is not compiled a second time while it runs. That would take longer than what it saves in a process
 * that lives for some seconds: a start of PGlite takes two thirds of the time, and its first queries a quarter.
 */
const EXEC_ARGV = ['--liftoff-only'];

/**
 * The files of a project share a few processes, so that each one loads the service once and starts PGlite once. So a file
 * leaves nothing behind; what its helpers have started ends in `clean-up.ts`. Only those of processes and of floods are
 * isolated.
 */
const project = (name: string, include: string[], { globalSetup = [], ...rest }: UserWorkspaceConfig['test'] = {}) =>
  projectOf(import.meta.dirname, name, include, {
    ...SECOND_ATTEMPT,
    globalSetup: [...BUILDS, CERTIFICATE, POSTGRES, CONTRACT, ...[globalSetup].flat()],
    setupFiles: ['test/support/built.ts'],
    execArgv: EXEC_ARGV,
    ...rest,
  });

/** The projects of the service. They run after those of the library, so that the two do not slow each other down. */
export const projects = [
  project('service', ['test/**/*.test.{ts,tsx}'], {
    exclude: [...BENCH, ...PROCESS, ...BROWSER, ...FLOODS, ...PURE],
    sequence: { groupOrder: 2 },
  }),
  ...(NIGHTLY ? [projectOf(import.meta.dirname, 'service-bench', BENCH)] : []),
  project('service-pure', PURE, { sequence: { groupOrder: 2 } }),
  project('service-postgres', STORES, { env: { DB: 'postgres' }, sequence: { groupOrder: 2 } }),
  project('service-browser', BROWSER, {
    globalSetup: ['headgate-testbed/browser'],
    sequence: { groupOrder: 3 },
  }),
  // Nothing that another file has left to do keeps its event loop busy.
  project('service-floods', FLOODS, { isolate: true, sequence: { groupOrder: 2 } }),
  // Tests of crashes wait for leases to expire, so many of them wait at the same time. For the same reason, more files run side by
  // side than elsewhere, and no browser beside them.
  project('service-process', PROCESS, {
    isolate: true,
    maxConcurrency: 13,
    maxWorkers: availableParallelism() + 2,
    testTimeout: 300_000,
    sequence: { groupOrder: 4 },
  }),
];

export default defineConfig({
  test: {
    projects,
    maxWorkers: MAX_WORKERS,
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary', 'html'] },
  },
});
