/** Before each test file that needs the built package: waits until the build ends. */
import { inject } from 'vitest';
import { buildHasEnded } from './build-result.ts';

await buildHasEnded(inject('build').result);
