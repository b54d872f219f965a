import { afterAll } from 'vitest';

const later: (() => unknown)[] = [];

// At the top of the file: a hook that is added while tests run is ignored.
afterAll(async () => {
  for (const each of later.splice(0).reverse()) await each();
});

/** Runs after the test file, the last one first. */
export function cleanUpLater(clean: () => unknown): void {
  later.push(clean);
}
