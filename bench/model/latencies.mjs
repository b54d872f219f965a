/** Latencies of decisions; they are sorted once, for the summary. */
export function createLatencies() {
  const all = [];
  return {
    add: (micros) => all.push(micros),
    /** @returns in microseconds */
    summary() {
      const sorted = Float64Array.from(all).sort();
      const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
      return { p50: at(0.5), p99: at(0.99), p999: at(0.999) };
    },
  };
}
