import { describe, expect, it } from 'vitest';

const load = (file: string) => import(new URL(`../src/${file}.mjs`, import.meta.url).href);
const { chooseWorkloads, inRounds } = await load('rounds');
const { createCells } = await load('cells');
const { median, spreadOf, verdict } = await load('statistics');
const { toJson } = await load('results');

describe('the figures of the benchmarks', () => {
  it('are medians: for an even number of rounds, halfway between the middle two', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(spreadOf([5, 1, 9])).toEqual({ median: 5, least: 1, most: 9, values: [5, 1, 9] });
  });

  it('meet a target if the median does, and are undecided if fewer than three rounds in four agree', () => {
    const isMost = (value: number) => value <= 10;
    const judge = (...values: number[]) => verdict(spreadOf(values), isMost);
    expect(judge(8, 9, 9, 11)).toEqual({ met: true, undecided: false });
    expect(judge(8, 9, 11)).toEqual({ met: true, undecided: true });
    expect(judge(9, 11, 12, 13)).toEqual({ met: false, undecided: false });
  });

  it('are stored in six digits; whole numbers stay exact', () => {
    expect(JSON.parse(toJson({ seed: 20260101, ratio: 1.23456789 }))).toEqual({ seed: 20260101, ratio: 1.23457 });
  });

  it('come from candidates that take turns, in the opposite order every other round, after a warm-up round', async () => {
    const seen: string[] = [];
    const contestants = ['a', 'b'].map((name) => ({ name }));
    const figures = await inRounds({
      rounds: 2,
      workloads: [{ name: 'w', contestants }],
      progress: () => {},
      measure: ({ name }: { name: string }, _: unknown, isWarmUp: boolean) => {
        seen.push(isWarmUp ? name.toUpperCase() : name);
        return seen.length;
      },
    });
    expect(seen).toEqual(['A', 'B', 'b', 'a', 'a', 'b']);
    expect(figures).toEqual({ w: { a: [4, 5], b: [3, 6] } });
  });

  it('are compared within a round', () => {
    const figures = { w: { ours: [{ ns: 10 }, { ns: 100 }, { ns: 10 }], floor: [{ ns: 5 }, { ns: 50 }, { ns: 2 }] } };
    const cells = createCells(figures);
    expect(cells.ratio('ns', ['w', 'ours'], 'floor')).toMatchObject({ median: 2, least: 2, most: 5 });
    expect(cells.figure('ns', 'w', 'ours')).toBe(10);
    expect(cells.figure('ns', 'w', 'unknown')).toBeUndefined();
  });

  it('can be selected by words; the floor of each selected client stays', () => {
    const contestants = [
      { client: 'ioredis', candidate: 'floor' },
      { client: 'ioredis', candidate: 'headgate' },
      { client: 'node-redis', candidate: 'floor' },
      { client: 'node-redis', candidate: 'peer' },
    ];
    const cells = [
      { name: 'spread 1', keys: 'spread', concurrency: 1, contestants },
      { name: 'hot 256', keys: 'hot', concurrency: 256, contestants },
    ];
    const chosen = chooseWorkloads(cells, 'spread|hot,256,headgate');
    expect(chosen.map(({ name }: { name: string }) => name)).toEqual(['hot 256']);
    expect(chosen[0].contestants.map(({ name }: { name: string }) => name)).toEqual([
      'floor on ioredis',
      'headgate on ioredis',
    ]);
  });
});
