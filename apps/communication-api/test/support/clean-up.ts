const later: (() => unknown)[] = [];

/** Runs after the test file, the last one first. */
export function cleanUpLater(clean: () => unknown): void {
  later.push(clean);
}

/** After each test file: see `built.ts`. */
export async function cleanUp(): Promise<void> {
  for (const each of later.splice(0).reverse()) await each();
}
