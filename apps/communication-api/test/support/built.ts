/** Before each test file: waits until the library and the service are built. */
import { afterAll, inject } from 'vitest';
import type {} from '../../../../test/support/build.ts';
import { buildHasEnded } from '../../../../test/support/build-result.ts';
import { cleanUp } from './clean-up.ts';
import { forgetSecrets } from './secret.ts';

await buildHasEnded(inject('build').result);
await buildHasEnded(inject('serviceBuild').result);

afterAll(async () => {
  await cleanUp();
  forgetSecrets();
});
