import { nextTurn } from '../base/slices.ts';

/** Items that are compared without a pause. There may be 100,000 of them, and other requests wait meanwhile. */
const RUN = 1_000;

/** Returns the items sorted by the code units of their names, which are all different. */
export async function sortInSlices<Item>(
  items: readonly Item[],
  nameOf: (item: Item) => string,
): Promise<readonly Item[]> {
  const isBefore = beforeBy(nameOf);
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

/** Returns the items of two sorted lists as one. Of items with the same name, the item of `later` comes first. */
export function mergeInSlices<Item>(
  list: readonly Item[],
  later: readonly Item[],
  nameOf: (item: Item) => string,
): Promise<readonly Item[]> {
  return merge(list, later, beforeBy(nameOf));
}

/** Returns the items whose names begin with a prefix: neighbours in a sorted list. */
export function withPrefix<Item>(
  sorted: readonly Item[],
  prefix: string,
  nameOf: (item: Item) => string,
): readonly Item[] {
  const from = firstIndex(sorted, (item) => nameOf(item) >= prefix);
  return sorted.slice(
    from,
    firstIndex(sorted, (item) => nameOf(item) >= prefix && !nameOf(item).startsWith(prefix)),
  );
}

/** The first place from which the test is true; the length of the list if it never is. */
function firstIndex<Item>(list: readonly Item[], test: (item: Item) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (test(list[middle] as Item)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function beforeBy<Item>(nameOf: (item: Item) => string): (a: Item, b: Item) => boolean {
  return (a, b) => nameOf(a) < nameOf(b);
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
