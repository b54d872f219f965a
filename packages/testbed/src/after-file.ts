const cleanups: (() => unknown)[] = [];

/**
 * Runs `clean` after the last test of the file that is running. Files of a project that is not isolated share their
 * modules, so an `afterAll` at the top of a module in this folder would only run for the first file that imports it.
 * All of them begin at once, the latest first: a server may only stop once its clients are gone.
 */
export function afterFile(clean: () => unknown): void {
  cleanups.unshift(clean);
}

export async function cleanUp(): Promise<void> {
  await Promise.all(cleanups.splice(0).map((clean) => clean()));
}
