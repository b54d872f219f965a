/** Pixels between the centers of two marks that do not touch. */
export const MARK = 16;

/** Pixels that the number of a pile needs. */
const PILE = 30;

/** Rows of marks. Requests that find no room in them are counted in a pile. */
const ROWS = 5;

/** The place of a request: where in time, and how far above the ground. */
export interface Mark {
  readonly index: number;
  readonly x: number;
  readonly row: number;
}

/** Requests that have no room of their own. */
export interface Pile {
  readonly x: number;
  readonly indexes: readonly number[];
}

export interface Marks {
  readonly marks: readonly Mark[];
  readonly piles: readonly Pile[];
  /** How many rows the highest column has. */
  readonly rows: number;
}

/** Places requests so that no mark covers another one: beside each other, else above each other, else in a pile. */
export function placeMarks(places: readonly number[], width: number): Marks {
  const marks: Mark[] = [];
  const piles: { x: number; indexes: number[] }[] = [];
  const ends: number[] = [];
  places.forEach((x, index) => {
    if (x > width) return;
    let row = ends.findIndex((end) => x - end >= MARK);
    if (row < 0) row = ends.length;
    const pile = piles.at(-1);
    if (row < ROWS) {
      ends[row] = x;
      marks.push({ index, x, row });
    } else if (pile !== undefined && x - pile.x < PILE) pile.indexes.push(index);
    else piles.push({ x, indexes: [index] });
  });
  return { marks, piles, rows: ends.length };
}

/** The request whose mark or pile is at a place, `rise` pixels above the ground. */
export function requestAt({ marks, piles, rows }: Marks, x: number, rise: number, reach: number): number | undefined {
  const mark = marks.findLast((one) => Math.abs(one.x - x) <= reach && Math.abs(one.row * MARK - rise) <= reach);
  if (mark !== undefined) return mark.index;
  return piles.find((one) => Math.abs(one.x - x) <= PILE / 2 && Math.abs(rows * MARK - rise) <= reach)?.indexes[0];
}
