const EXACT_TERMS = 1_000;
const PANELS = 4_000;

/**
 * Draws ranks from 1 to `count`; rank k has the weight k^-exponent. It uses rejection from the inverse of the weights'
 * integral (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
 * distributions", ACM TOMACS 6(3), 1996): constant time and no table, for any number of ranks.
 * @param exponent above 0
 */
export function createZipf({ count, exponent, random }) {
  const weight = (x) => Math.exp(-exponent * Math.log(x));
  // (x^(1 - exponent) - 1) / (1 - exponent), or log(x) if the exponent is 1, and its inverse. Also exact near 1.
  const power = 1 - exponent;
  const integral = (x) => (power === 0 ? Math.log(x) : Math.expm1(power * Math.log(x)) / power);
  const inverse = (y) => Math.exp(power === 0 ? y : Math.log1p(Math.max(power * y, -1)) / power);

  const first = integral(1.5) - 1;
  const last = integral(count + 0.5);
  /** A point that is closer than this to its rank is always accepted. */
  const certain = 2 - inverse(integral(2.5) - weight(2));
  return function sample() {
    for (;;) {
      const y = last + random.uniform() * (first - last);
      const x = inverse(y);
      const rank = Math.min(count, Math.max(1, Math.round(x)));
      if (rank - x <= certain || y >= integral(rank + 0.5) - weight(rank)) return rank;
    }
  };
}

/**
 * The sum of `term(rank)` from 1 to `count`: the first terms exactly, the smooth rest by the midpoint rule on panels
 * whose widths grow by a constant ratio.
 */
export function sumOverRanks(count, term) {
  let sum = 0;
  const exact = Math.min(count, EXACT_TERMS);
  for (let rank = 1; rank <= exact; rank++) sum += term(rank);
  if (exact === count) return sum;
  const [from, to] = [Math.log(exact + 0.5), Math.log(count + 0.5)];
  const step = (to - from) / PANELS;
  for (let panel = 0; panel < PANELS; panel++) {
    const left = Math.exp(from + panel * step);
    const right = Math.exp(from + (panel + 1) * step);
    sum += term((left + right) / 2) * (right - left);
  }
  return sum;
}

/** The sum of all weights. */
export const zipfTotal = (count, exponent) => sumOverRanks(count, (rank) => rank ** -exponent);
