export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The value that a share of the others is below, such as 0.99. */
export const quantile = (values, share) => values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];

/** A figure of several rounds: its median, its least and its most. */
export function spreadOf(values) {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values), values };
}

/** Share of the rounds that must agree with the median. */
const AGREEING = 0.75;

/** `met`: whether the median meets a target. `undecided`: whether too few rounds agree with that to be sure. */
export function verdict({ median: middle, values }, isMet) {
  const met = isMet(middle);
  return { met, undecided: values.filter((value) => isMet(value) === met).length < AGREEING * values.length };
}
