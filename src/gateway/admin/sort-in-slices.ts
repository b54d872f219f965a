import { nextTurn } from '../../core/slices.ts';

/** Items that are compared without a pause. There may be 100,000 of them, and other requests wait meanwhile. */
const RUN = 1_000;

/** Returns the items sorted by the code units of their names, which are all different. */
export async function sortInSlices<Item>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
): Promise<readonly Item[]> {
  const isBefore = (a: Item, b: Item): boolean => nameOf(a) < nameOf(b);
  let runs: Item[][] = [];
  for (let i = 0; i < items.length; i += RUN) {
    runs.push(items.slice(i, i + RUN).sort((a, b) => (isBefore(a, b) ? -1 : 1)));
    await nextTurn();
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let i = 0; i < runs.length; i += 2) merged.push(await merge(runs[i] as Item[], runs[i + 1] ?? [], isBefore));
    runs = merged;
  }
  return runs[0] ?? [];
}

async function merge<Item>(
  left: readonly Item[],
  right: readonly Item[],
  isBefore: (a: Item, b: Item) => boolean,
): Promise<Item[]> {
  const all: Item[] = [];
  for (let i = 0, j = 0; all.length < left.length + right.length; ) {
    const [a, b] = [left[i], right[j]];
    if (b === undefined || (a !== undefined && isBefore(a, b))) {
      all.push(a as Item);
      i++;
    } else {
      all.push(b);
      j++;
    }
    if (all.length % RUN === 0) await nextTurn();
  }
  return all;
}
