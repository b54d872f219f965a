import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { scriptsAsText } from './scripts/scripts-as-text.mjs';

/** Most mutants are killed by a quick test of their own part, so these come first, and the slow ones last. */
class SlowTestsLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => ORDER.findLastIndex((part) => moduleId.includes(part));
    return [...files].sort((a, b) => rank(a) - rank(b));
  }
}

/** Parts of the names of files. The last one that fits counts. */
const ORDER = [
  '/test/core/',
  '/test/stores/memory/',
  '/test/limits/',
  '/claims-page',
  // From a second to several:
  'limits/misuse',
  'adjusted-window-sets',
  'memory/adjustments',
  'memory/sharded-map',
  'memory/claims.test',
  'names-collisions',
  'shared-limits',
  '.property.',
  '-bounds',
];

/** The tests that judge a mutant of the core or of the memory stores. They need no build and no Redis. */
export default defineConfig({
  plugins: [scriptsAsText],
  test: {
    include: [
      'test/core/**/*.test.ts',
      'test/claims-page.test.ts',
      'test/header-truth.property.test.ts',
      'test/limits/*.test.ts',
      'test/shared-limits/{lineage.property,shared-limits}.test.ts',
      'test/stores/*.test.ts',
      'test/stores/memory/**/*.test.ts',
    ],
    // One process for all files: a worker per file costs more than the tests.
    isolate: false,
    setupFiles: ['test/support/mutation.ts'],
    sequence: { sequencer: SlowTestsLast },
    // Only Stryker's own time limit ends a mutant: a slow test of a busy machine would count as a kill.
    testTimeout: 600_000,
    // A mutant that survives runs all of its tests, so each property has few histories.
    env: { HEADGATE_HISTORIES: '40' },
  },
});
