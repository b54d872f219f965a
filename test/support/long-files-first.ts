import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take longest, from the root of the repository, the longest first. A group ends with its last file, so one of these
 * that begins late has the cores for itself. A fresh clone has no cache of durations from which Vitest could know them.
 */
const LONG = [
  'test/consumers.test.ts',
  'test/examples.test.ts',
  'apps/gateway/test/process/workers.test.ts',
  'test/stores/redis/stalled-process-faults.nightly.test.ts',
  'test/stores/redis/faults.test.ts',
  'test/stores/redis/ready-faults.test.ts',
  'apps/communication-api/test/faults/smtp.test.ts',
  'apps/communication-api/test/db/embedded.test.ts',
  'apps/communication-api/test/faults/outlook.nightly.test.ts',
  'apps/gateway/test/console/limits.test.ts',
  'apps/communication-api/test/browser/dashboard.test.ts',
  'apps/communication-api/test/browser/wizard.test.ts',
  'apps/communication-api/test/browser/away.nightly.test.ts',
  'apps/communication-api/test/browser/acceptance.nightly.test.ts',
  'apps/communication-api/test/process/start.test.ts',
  'apps/communication-api/test/process/rolling.nightly.test.ts',
  'apps/communication-api/test/process/image.nightly.test.ts',
  'apps/communication-api/test/process/webhooks.test.ts',
  'apps/communication-api/test/process/crash.test.ts',
  'apps/communication-api/test/process/operations.nightly.test.ts',
  'apps/communication-api/test/process/crash-providers.nightly.test.ts',
];

/** Groups and projects in Vitest's order, and in each project its long files first. */
export class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((project) =>
      sorted.filter((file) => file.project === project).sort((a, b) => this.#rank(a) - this.#rank(b)),
    );
  }

  #rank({ moduleId }: TestSpecification): number {
    const place = LONG.indexOf(relative(this.ctx.config.root, moduleId));
    return place === -1 ? LONG.length : place;
  }
}
