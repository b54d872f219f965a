/** Before each test file: waits until the library, the service, and the database to copy are built. */

import type {} from 'headgate-testbed/build';
import { buildHasEnded } from 'headgate-testbed/build-result';
import { afterAll, inject } from 'vitest';
import { cleanUp } from './clean-up.ts';
import { forgetSecrets } from './secret.ts';

await buildHasEnded(inject('build').result);
await buildHasEnded(inject('serviceBuild').result);
await buildHasEnded(inject('postgres').result);

afterAll(async () => {
  await cleanUp();
  forgetSecrets();
});
