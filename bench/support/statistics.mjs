export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** What a figure of several rounds is told by: the middle one, with the least and the most. */
export function spreadOf(values) {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values), values };
}

/** Share of the rounds that must say what the middle one says. */
const AGREEING = 0.75;

/** Whether the middle round meets a target, and whether too few of the others say the same to be sure of it. */
export function verdict({ median: middle, values }, isMet) {
  const met = isMet(middle);
  return { met, undecided: values.filter((value) => isMet(value) === met).length < AGREEING * values.length };
}
