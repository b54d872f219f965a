import { describe, expect, it } from 'vitest';

const load = (file: string) => import(new URL(`../../bench/support/${file}.mjs`, import.meta.url).href);
const { chooseWorkloads, inRounds } = await load('rounds');
const { createCells } = await load('cells');
const { median, spreadOf, verdict } = await load('statistics');
const { toJson } = await load('results');
const { guardReport } = await load('guard-report');
const { perfCount, valgrindCount } = await load('instructions');

describe('the figures of the benchmarks', () => {
  it('are middle values: of an even number, between the two', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(spreadOf([5, 1, 9])).toEqual({ median: 5, least: 1, most: 9, values: [5, 1, 9] });
  });

  it('meet a target by the middle one, and leave it undecided where fewer than three in four agree', () => {
    const isMost = (value: number) => value <= 10;
    const said = (...values: number[]) => verdict(spreadOf(values), isMost);
    expect(said(8, 9, 9, 11)).toEqual({ met: true, undecided: false });
    expect(said(8, 9, 11)).toEqual({ met: true, undecided: true });
    expect(said(9, 11, 12, 13)).toEqual({ met: false, undecided: false });
  });

  it('are kept in six digits; what is counted stays whole', () => {
    expect(JSON.parse(toJson({ seed: 20260101, ratio: 1.23456789 }))).toEqual({ seed: 20260101, ratio: 1.23457 });
  });

  it('come from candidates in turns, in the opposite order every other round, after a round that only warms up', async () => {
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
    expect(cells.figure('ns', 'w', 'nobody')).toBeUndefined();
  });

  it('can be asked for by words; a floor stays for whoever is measured on its client', () => {
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

describe('the guard', () => {
  const rounds = (...costs: number[]) => costs.map((cost) => ({ cost }));
  const settings = { limit: 1.15, base: 'abc1234', rounds: 3, unit: 'CPU ns' };

  it('fails where the middle ratio of the rounds is past the limit, and says which', () => {
    const figures = {
      same: { base: rounds(100, 100, 100), head: rounds(100, 190, 101) },
      slower: { base: rounds(100, 200, 300), head: rounds(116, 240, 351) },
    };
    const { text, isSlower } = guardReport({ figures, ...settings });
    expect(isSlower).toBe(true);
    expect(text).toContain('Past 1.15: slower.');
    expect(text).toMatch(/same .* 1\.01 \(1\.00–1\.90\) \| ✓/);
  });

  it('passes at the limit itself', () => {
    const figures = { even: { base: rounds(100), head: rounds(115) } };
    expect(guardReport({ figures, ...settings }).isSlower).toBe(false);
  });

  it('reads instruction counts, and knows when there are none', () => {
    expect(perfCount('123456,,instructions:u,5000,100.00,,\n')).toBe(123_456);
    expect(perfCount('<not supported>,,instructions:u,0,100.00,,\n')).toBeUndefined();
    expect(valgrindCount('==1== I   refs:      1,177,890,702\n')).toBe(1_177_890_702);
  });
});
