import { describe, expect, it } from 'vitest';

const { chartSvg, short, ticksOf } = await import(new URL('../src/chart.mjs', import.meta.url).href);

const bars = [
  { label: 'headgate', value: 300, least: 250, most: 400, kind: 'ours' },
  { label: '@peer/<one> & "co"', value: 42_000, kind: 'peer' },
];
const chart = { title: 'A check', unit: 'ns', scale: 'log', better: 'less', panels: [{ title: '1,000 keys', bars }] };

describe('chartSvg', () => {
  it('writes every figure as text beside its bar', () => {
    const svg: string = chartSvg(chart);
    const words = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
    expect(words).toEqual(expect.arrayContaining(['A check', '1,000 keys', 'headgate', '300', '42k']));
    expect(words).toContain('ns · less is better · logarithmic scale');
  });

  it('escapes labels', () => {
    expect(chartSvg(chart)).toContain('@peer/&lt;one&gt; &amp; &quot;co&quot;');
  });

  it('has colours for light and dark, and a class per kind of bar', () => {
    const svg: string = chartSvg(chart);
    expect(svg).toContain('@media (prefers-color-scheme:dark)');
    for (const kind of ['paper', 'ours', 'peer', 'floor']) {
      expect(new Set(svg.match(new RegExp(`\\.${kind}\\{fill:[^}]+`, 'g'))).size).toBe(2);
    }
    expect(svg.match(/<rect class="bar (ours|peer)"/g)).toHaveLength(2);
  });

  it('has ticks that enclose every figure: powers of ten, or equal steps from 0', () => {
    expect(ticksOf(chart.panels, 'log')).toEqual([100, 1_000, 10_000, 100_000]);
    expect(ticksOf([{ bars: [{ value: 163 }, { value: 40, most: 181 }] }], 'linear')).toEqual([0, 50, 100, 150, 200]);
  });

  it('shows the whole range if a part of it is below 0', () => {
    const below = [{ label: 'ours', value: 10, least: -8, most: 30, kind: 'ours' }];
    expect(ticksOf([{ bars: below }], 'linear')).toEqual([-10, 0, 10, 20, 30]);
    const svg: string = chartSvg({ ...chart, scale: 'linear', panels: [{ title: '', bars: below }] });
    const [, x, width] = svg.match(/<rect class="bar ours" x="([\d.]+)"[^>]* width="([\d.]+)"/) ?? [];
    const [, from, to] = svg.match(/<path class="spread" d="M([\d.]+) [\d.]+H([\d.]+)"/) ?? [];
    const unit = Number(width) / 10;
    expect((Number(x) - Number(from)) / unit).toBeCloseTo(8, 0);
    expect((Number(to) - Number(x)) / unit).toBeCloseTo(30, 0);
  });

  it('draws lengths in proportion on either scale', () => {
    const widths = (scale: string, values: number[]): number[] => {
      const panels = [{ title: '', bars: values.map((value) => ({ label: '', value, kind: 'peer' })) }];
      const svg: string = chartSvg({ ...chart, scale, panels });
      return [...svg.matchAll(/class="bar peer"[^>]*? width="([\d.]+)"/g)].map(([, width]) => Number(width));
    };
    const [half, full] = widths('linear', [50, 100]) as [number, number];
    expect(full / half).toBeCloseTo(2, 2);
    // The axis begins at 1, and every power of ten has the same length.
    const [, ten, hundred] = widths('log', [1, 10, 100]) as [number, number, number];
    expect(hundred / ten).toBeCloseTo(2, 2);
  });

  it('writes numbers in three digits', () => {
    expect([0.123456, 9.876, 999.4, 999.6, 1_234, 15_400_000, 2e9].map(short)).toEqual([
      '0.123',
      '9.88',
      '999',
      '1k',
      '1.23k',
      '15.4M',
      '2G',
    ]);
  });
});
