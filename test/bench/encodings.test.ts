import { describe, expect, it } from 'vitest';

const { report } = await import(new URL('../../bench/topics/encodings.mjs', import.meta.url).href);

/** The names in bench/results. The page shows titles instead. */
const PARTS = ['SET PXAT', 'SET PX where the end moved, else SETRANGE', '16 records a call', '64 records a call'];
const NAMES = [
  'bare `return 1`',
  'rate-limiter-flexible, one window',
  'one string of packed doubles, SET PX',
  ...PARTS,
];
const scripts = Object.fromEntries(NAMES.map((name, i) => [name, [{ micros: i + 1 }]]));
const { markdown, chart } = report({ rounds: 1, keyCount: 10_000, figures: { scripts } });

describe('the report of the topic encodings', () => {
  it('marks exactly the parts that headgate’s script has, in the table and in the chart', () => {
    const ours = ['SET PX if the end moved, else SETRANGE', '16 records per call'];
    const bars: { label: string; kind: string }[] = chart.panels[0].bars;
    expect(bars.filter(({ kind }) => kind === 'ours').map(({ label }) => label)).toEqual(ours);
    expect(bars.filter(({ kind }) => kind === 'floor').map(({ label }) => label)).toEqual(['bare return 1']);
    expect([...markdown.matchAll(/\*\*(.+?)\*\*/g)].map(([, name]) => name)).toEqual(ours);
  });
});
