// JavaScript, because Node itself loads it for the configs of Vitest.
import { availableParallelism } from 'node:os';
import { configDefaults } from 'vitest/config';

/** Whether this is the nightly run, which also runs `*.nightly.test.ts`: see `src/nightly.ts`. */
export const NIGHTLY = process.env.HEADGATE_NIGHTLY === '1';

/** Tests that prove much and take long, so a change does not wait for them. */
const NIGHTLY_FILES = NIGHTLY ? [] : ['**/*.nightly.test.{ts,tsx}'];

/** More than there are cores: many tests wait for a timer, a process or a server. */
export const MAX_WORKERS = availableParallelism() + 1;

/** For tests of processes, browsers and servers: `second-attempts.ts` names those that needed it. */
export const SECOND_ATTEMPT = { retry: 1 };

/**
 * A project of a house. Files of a project share a few processes, one after the other, so a test may not leave anything
 * behind. An isolated project gives each file a process of its own: for files that change their process for good.
 * @param {string} root folder of the house, to which the paths are relative
 * @param {string} name
 * @param {string[]} include
 * @param {NonNullable<import('vitest/config').UserWorkspaceConfig['test']>} options
 */
export function projectOf(root, name, include, { exclude = [], setupFiles = [], ...rest } = {}) {
  return {
    root,
    test: {
      name,
      include,
      exclude: [...configDefaults.exclude, ...NIGHTLY_FILES, ...exclude],
      setupFiles: ['headgate-testbed/setup', ...[setupFiles].flat()],
      testTimeout: 300_000,
      hookTimeout: 300_000,
      // A busy machine may take longer than the default of one second.
      expect: { poll: { timeout: 30_000 } },
      slowTestThreshold: 3_000,
      isolate: false,
      ...rest,
    },
  };
}
