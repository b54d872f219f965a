/** Longer names are not compared: the work grows with the product of both lengths. */
const MAX_LENGTH = 100;
const MAX_CANDIDATES = 1_000;
/** A shorter start of a name could mean many names. */
const MIN_START = 3;

/** `, did you mean "host"?` if one of the known names is near; otherwise `otherwise`. */
export function didYouMean(name: string, known: readonly string[], otherwise = ''): string {
  const nearest = nearestName(name, known);
  return nearest === undefined ? otherwise : `, did you mean ${JSON.stringify(nearest)}?`;
}

/**
 * The known name that takes the fewest edits: at most a third of its letters, or one that only adds letters at the end.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  for (const candidate of known.slice(0, MAX_CANDIDATES)) {
    const longer = Math.max(name.length, candidate.length);
    const isStart = name.length >= MIN_START && candidate.toLowerCase().startsWith(name.toLowerCase());
    const most = isStart ? longer : Math.max(1, Math.floor(longer / 3));
    if (longer > MAX_LENGTH || Math.abs(name.length - candidate.length) > most) continue;
    const edits = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (edits > most || edits >= fewest) continue;
    nearest = candidate;
    fewest = edits;
  }
  return nearest;
}

/** `a`, `a or b`, `a, b or c`. */
export function alternatives(names: readonly string[]): string {
  return [names.slice(0, -1).join(', '), ...names.slice(-1)].filter((part) => part !== '').join(' or ');
}

/** How many letters must be added, dropped, replaced, or swapped with their neighbour. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number => rows[row]?.[column] as number;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = i > 1 && j > 1 && isSwap ? at(i - 2, j - 2) + 1 : replaced;
      row.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped));
    }
  }
  return at(a.length, b.length);
}
