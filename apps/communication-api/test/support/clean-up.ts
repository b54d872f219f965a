import { afterAll } from 'vitest';

const later: (() => unknown)[] = [];

/** Runs after the test file, the last one first. */
export function cleanUpLater(clean: () => unknown): void {
  if (later.length === 0)
    afterAll(async () => {
      for (const each of later.splice(0).reverse()) await each();
    });
  later.push(clean);
}
