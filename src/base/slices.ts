/** Longest time that such work keeps everything else waiting, about, in milliseconds. */
const SLICE_MS = 4;
const LITTLE_MS = 0.5;

/** Does work for each item, in slices: much work at once would keep requests waiting. Little work is done at once. */
export async function inSlices<Item>(items: Iterable<Item>, work: (item: Item) => void): Promise<void> {
  let begun = performance.now();
  for (const item of items) {
    work(item);
    if (performance.now() - begun < SLICE_MS) continue;
    await nextTurn();
    begun = performance.now();
  }
  // The caller may go on with other work of this kind.
  if (performance.now() - begun > LITTLE_MS) await nextTurn();
}

/** Lets everything that happened meanwhile run. */
export function nextTurn(): Promise<void> {
  return new Promise(onNextTurn);
}

/** Calls `run` after everything that happened meanwhile. */
export function onNextTurn(run: () => void): void {
  try {
    setImmediate(run);
  } catch {
    // Some runtimes lack it, and the Edge runtime of Next.js throws.
    setTimeout(run, 0);
  }
}
