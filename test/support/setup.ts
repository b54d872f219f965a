/** Runs before each test file. */
import { afterAll, expect } from 'vitest';
import { cleanUp } from './after-file.ts';
import { sameBytes } from './same.ts';

const worker = globalThis as { headgateTesters?: true };
if (worker.headgateTesters === undefined) expect.addEqualityTesters([sameBytes]);
worker.headgateTesters = true;

afterAll(cleanUp);
