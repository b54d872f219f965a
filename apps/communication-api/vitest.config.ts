import { configDefaults, defineConfig, type UserWorkspaceConfig } from 'vitest/config';

/** The built service, as a process. */
const PROCESS = ['test/process/**/*.test.ts'];

/** Tests of stores by their operations, which run once more on a PostgreSQL server. */
const STORES = ['test/api/{accounts,keys,limits,links,scopes}.test.ts', 'test/api/emails/send.test.ts'];

/** Pages in Chromium. */
const BROWSER = ['test/browser/**/*.test.{ts,tsx}'];

const BUILDS = ['../../test/support/build.ts', 'test/support/build.ts'];
const POSTGRES = 'test/support/postgres-servers.ts';
const CERTIFICATE = 'test/support/test-certificate.ts';
const CONTRACT = 'test/support/contract-coverage.ts';

/** Each test file has a process of its own, since PGlite's memory is only given back at its end. */
const project = (name: string, include: string[], { globalSetup = [], ...rest }: UserWorkspaceConfig['test'] = {}) => ({
  // Relative paths are the service's, also when the root's config has these projects.
  root: import.meta.dirname,
  test: {
    name,
    include,
    globalSetup: [...BUILDS, CERTIFICATE, POSTGRES, CONTRACT, ...[globalSetup].flat()],
    setupFiles: ['test/support/built.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    ...rest,
  },
});

/** The projects of the service. They run after those of the library, so that the two do not slow each other down. */
export const projects = [
  project('service', ['test/**/*.test.{ts,tsx}'], {
    exclude: [...configDefaults.exclude, ...PROCESS, ...BROWSER],
    sequence: { groupOrder: 2 },
  }),
  project('service-postgres', STORES, { env: { DB: 'postgres' }, sequence: { groupOrder: 2 } }),
  project('service-browser', BROWSER, {
    globalSetup: ['test/support/browser.ts'],
    maxWorkers: 1,
    sequence: { groupOrder: 3 },
  }),
  // Tests of crashes wait for leases to expire, so many of them wait at the same time.
  project('service-process', PROCESS, {
    maxWorkers: 2,
    maxConcurrency: 11,
    testTimeout: 120_000,
    sequence: { groupOrder: 4 },
  }),
];

export default defineConfig({ test: { projects } });
