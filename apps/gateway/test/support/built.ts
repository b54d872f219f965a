/** Before each test file of the process: waits until it is built. */
import { buildHasEnded } from 'headgate-testbed/build-result';
import { inject } from 'vitest';
import type {} from './build.ts';

await buildHasEnded(inject('gatewayBuild').result);
