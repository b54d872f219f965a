export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** What a figure of several rounds is told by: the middle one, with the least and the most. */
export function spreadOf(values) {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}
