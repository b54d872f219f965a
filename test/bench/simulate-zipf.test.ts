import { describe, expect, it } from 'vitest';
import { createRandom } from '../../bench/model/random.mjs';
import { createZipf, sumOverRanks, zipfTotal } from '../../bench/model/zipf.mjs';

const SAMPLES = 200_000;
/** By degrees of freedom: Pearson's statistic is above these values once in a thousand times. */
const CRITICAL: Record<number, number> = { 8: 26.12, 49: 85.35 };

function chiSquare(seen: readonly number[], expected: readonly number[]): number {
  return expected.reduce((sum, share, i) => sum + ((seen[i] as number) - share * SAMPLES) ** 2 / (share * SAMPLES), 0);
}

function tally(cells: number, cellOf: (rank: number) => number, sample: () => number): number[] {
  const seen = Array.from({ length: cells }, () => 0);
  for (let i = 0; i < SAMPLES; i++) {
    const cell = cellOf(sample());
    seen[cell] = (seen[cell] ?? 0) + 1;
  }
  expect(seen).toHaveLength(cells);
  return seen;
}

describe('Zipf’s law', () => {
  it.each([0.5, 0.8, 1, 1.5])('is the distribution of single ranks, with exponent %d', (exponent) => {
    const count = 50;
    const sample = createZipf({ count, exponent, random: createRandom(1) });
    const seen = tally(count, (rank) => rank - 1, sample);
    const total = zipfTotal(count, exponent);
    const expected = Array.from({ length: count }, (_, i) => (i + 1) ** -exponent / total);
    expect(chiSquare(seen, expected)).toBeLessThan(CRITICAL[count - 1] as number);
  });

  it.each([0.8, 1])('is the distribution of the decades of 10^9 ranks, with exponent %d', (exponent) => {
    const count = 1e9;
    const sample = createZipf({ count, exponent, random: createRandom(2) });
    const seen = tally(9, (rank) => Math.min(8, Math.floor(Math.log10(rank) + 1e-12)), sample);
    const upTo = Array.from({ length: 10 }, (_, i) =>
      i === 9 ? zipfTotal(count, exponent) : i === 0 ? 0 : zipfTotal(10 ** i - 1, exponent),
    );
    const expected = seen.map((_, i) => ((upTo[i + 1] as number) - (upTo[i] as number)) / (upTo[9] as number));
    expect(chiSquare(seen, expected)).toBeLessThan(CRITICAL[8] as number);
  });

  it('has the known sum of weights', () => {
    let exact = 0;
    for (let rank = 1; rank <= 200_000; rank++) exact += rank ** -0.8;
    expect(zipfTotal(200_000, 0.8)).toBeCloseTo(exact, 3);
    // The harmonic number of 10^9.
    expect(zipfTotal(1e9, 1)).toBeCloseTo(Math.log(1e9) + 0.577_215_664_9 + 0.5e-9, 4);
    expect(sumOverRanks(10, (rank: number) => rank)).toBe(55);
  });
});

describe('random numbers', () => {
  const mean = (draw: () => number): number => {
    let sum = 0;
    for (let i = 0; i < SAMPLES; i++) sum += draw();
    return sum / SAMPLES;
  };
  const random = createRandom(7);

  it('are the same for the same seed, and differ for another', () => {
    const drawn = (seed: number) => Array.from({ length: 5 }, createRandom(seed).uniform);
    expect(drawn(1)).toEqual(drawn(1));
    expect(drawn(1)).not.toEqual(drawn(2));
  });

  it('have the means of their distributions', () => {
    expect(mean(random.uniform)).toBeCloseTo(0.5, 2);
    expect(mean(() => random.exponential(3)) / 3).toBeCloseTo(1, 1);
    expect(mean(() => random.geometric(4)) / 4).toBeCloseTo(1, 1);
    expect(mean(() => random.geometric(1))).toBe(1);
    expect(mean(() => random.below(10))).toBeCloseTo(4.5, 1);
    expect(mean(() => random.lognormal(2, 0.5)) / (2 * Math.exp(0.125))).toBeCloseTo(1, 1);
  });
});
