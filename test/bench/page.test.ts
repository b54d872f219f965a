import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const load = (file: string) => import(new URL(`../../bench/${file}.mjs`, import.meta.url).href);
const { render } = await load('page');
const { page } = await load('support/page');
const { PLACES, toJson } = await load('support/results');
const { TOPICS, loadTopic } = await load('support/topics');
const { table } = await load('support/table');

const provenance = {
  ...{ node: 'v20.0.0', cpu: 'a processor', cores: 2, memoryGib: 8, os: 'linux', commit: 'abc1234' },
  ...{ date: '2026-01-02T03:04:05.000Z', versions: { redis: '7.0.15' } },
};

describe('docs/benchmarks.md', () => {
  it('is what npm run bench:page writes from the stored figures, and so are its charts', async () => {
    const { text, charts } = await render(PLACES.published.results);
    expect(readFileSync(PLACES.published.page, 'utf8')).toBe(text);
    expect(Object.keys(charts).length).toBeGreaterThan(0);
    for (const [name, svg] of Object.entries(charts)) {
      expect(readFileSync(new URL(name, PLACES.published.charts), 'utf8')).toBe(svg);
    }
  });

  it('has only topics with both functions, and stored figures of full runs', async () => {
    for (const topic of TOPICS) {
      const { measure, report } = await loadTopic(topic);
      expect([topic, typeof measure, typeof report]).toEqual([topic, 'function', 'function']);
      const file = new URL(`${topic}.json`, PLACES.published.results);
      if (existsSync(file)) expect(JSON.parse(readFileSync(file, 'utf8')).provenance.quick).toBe(false);
    }
  });

  it('shows met and missed targets, and the provenance of the figures', () => {
    const targets = [
      { what: 'fast', measured: '2', wanted: '≥ 1', met: true },
      { what: 'small', measured: '200', wanted: '≤ 150', met: false },
    ];
    const report = { title: 'One check, in memory', markdown: 'Words.', targets, chart: { title: 'A chart' } };
    const text: string = page([{ topic: 'memory', report, provenance, image: 'benchmarks/memory.svg' }]);
    expect(text).toMatch(/\| \[One check, in memory\]\(#one-check-in-memory\) +\| +1 of 2 \| 2026-01-02 \| abc1234 \|/);
    expect(text).toContain('![A chart](benchmarks/memory.svg)');
    expect(text).toMatch(/\| fast +\| +2 \| +≥ 1 \| ✓ \|/);
    expect(text).toMatch(/\| small +\| +200 \| +≤ 150 \| ✗ \|/);
    expect(text).toContain('redis 7.0.15. a processor, 2 cores, 8 GiB, linux, Node v20.0.0, commit abc1234');
  });

  it('has tables with aligned columns, which can be read in a terminal', () => {
    expect(
      table(
        ['', 'ns'],
        [
          ['headgate', 7],
          ['floor', 1_000],
        ],
      ),
    ).toBe(['|          |   ns |', '|----------|-----:|', '| headgate |    7 |', '| floor    | 1000 |'].join('\n'));
  });

  it('is made from JSON with one line per innermost object', () => {
    const text: string = toJson({
      rounds: 2,
      figures: { 'a {b}': [{ ns: 1.23456789 }, { ns: 2 }] },
      versions: { a: '[1]' },
    });
    expect(JSON.parse(text)).toEqual({
      rounds: 2,
      figures: { 'a {b}': [{ ns: 1.23457 }, { ns: 2 }] },
      versions: { a: '[1]' },
    });
    expect(text).toContain('{ "ns": 1.23457 },\n');
  });
});
