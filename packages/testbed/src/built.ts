/** Before each test file that needs the built package: waits until the build has ended. */
import { inject } from 'vitest';
import { buildHasEnded } from './build-result.ts';

await buildHasEnded(inject('build').result);
