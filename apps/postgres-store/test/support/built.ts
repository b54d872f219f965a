/** Before each test file: waits until the library is built. */

import type {} from 'headgate-testbed/build';
import { buildHasEnded } from 'headgate-testbed/build-result';
import { inject } from 'vitest';

await buildHasEnded(inject('build').result);
