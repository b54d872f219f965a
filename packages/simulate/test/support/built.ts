/** Before each test file: waits until the package is built. */
import { buildHasEnded } from 'headgate-testbed/build-result';
import { inject } from 'vitest';
import type {} from './build.ts';

await buildHasEnded(inject('simulateBuild').result);
