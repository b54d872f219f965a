/** Runs before each test file. */
import { afterAll, expect } from 'vitest';
import { cleanUp } from './after-file.ts';
import { sameBytes } from './same.ts';

// This loads Node's own fetch, which then keeps its dispatcher. Otherwise the package undici, if a file loads it, would
// set its own dispatcher for every later file of the process, and `fetch` cannot use it for a FormData.
void globalThis.Response;

const worker = globalThis as { headgateTesters?: true };
if (worker.headgateTesters === undefined) expect.addEqualityTesters([sameBytes]);
worker.headgateTesters = true;

afterAll(cleanUp);
