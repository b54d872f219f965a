/** Before each test file: waits until the library is built. */
import { inject } from 'vitest';
import type {} from '../../../../test/support/build.ts';
import { buildHasEnded } from '../../../../test/support/build-result.ts';

await buildHasEnded(inject('build').result);
