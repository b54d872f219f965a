/** Before each test file that needs the built package: waits until the build has ended. */
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { inject } from 'vitest';

const { result } = inject('build');
while (!existsSync(result)) await pause(50);
if (readFileSync(result, 'utf8') === 'failed') throw new Error('The build failed; its output is above.');
