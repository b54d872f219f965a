import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const load = (file: string) => import(new URL(`../src/${file}.mjs`, import.meta.url).href);
const { render } = await load('write-pages');
const { page } = await load('page');
const { loadResult, PLACES, toJson } = await load('results');
const { HOUSES, loadTopic, TOPICS } = await load('topics');
const { summaryPage } = await load('summary');
const { table } = await load('table');

const provenance = {
  ...{ node: 'v20.0.0', cpu: 'a processor', cores: 2, memoryGib: 8, os: 'linux', commit: 'abc1234' },
  ...{ date: '2026-01-02T03:04:05.000Z', versions: { redis: '7.0.15' } },
};

describe('docs/benchmarks.md', () => {
  it('is what npm run bench:page writes from the stored figures, which have a table and often a chart per topic', async () => {
    const { summary, full, charts } = await render(PLACES.published);
    expect(readFileSync(PLACES.published.summary, 'utf8')).toBe(summary);
    const measured = TOPICS.filter((topic: string) => loadResult(PLACES.published, topic) !== undefined);
    expect(measured.length).toBeGreaterThan(15);
    expect(full.match(/^## /gm)).toHaveLength(measured.length);
    for (const [name, svg] of Object.entries(charts)) {
      expect(full).toContain(`](${name})`);
      expect(svg).toMatch(/^<svg /);
    }
  });

  it('has only topics with both functions, and stored figures of full runs', async () => {
    for (const topic of TOPICS) {
      const { measure, report } = await loadTopic(topic);
      expect([topic, typeof measure, typeof report]).toEqual([topic, 'function', 'function']);
      expect(loadResult(PLACES.published, topic)?.provenance.quick ?? false).toBe(false);
    }
    for (const { folder, topics } of Object.values(HOUSES) as { folder: URL; topics: string[] }[]) {
      const modules = readdirSync(new URL('topics/', folder)).map((file) => file.replace('.mjs', ''));
      expect(modules.sort()).toEqual(topics.toSorted());
    }
  });

  it('shows met and missed targets, and the provenance of the figures', () => {
    const targets = [
      { what: 'fast', measured: '2', wanted: '≥ 1', met: true },
      { what: 'small', measured: '200', wanted: '≤ 150', met: false },
    ];
    const report = { title: 'One check, in memory', markdown: 'Words.', targets, chart: { title: 'A chart' } };
    const text: string = page([{ topic: 'stall', report, provenance, image: 'stall.svg' }]);
    expect(text).toMatch(/\| \[One check, in memory\]\(#one-check-in-memory\) +\| +1 of 2 \| 2026-01-02 \| abc1234 \|/);
    expect(text).toContain('![A chart](stall.svg)');
    expect(text).toMatch(/\| fast +\| +2 \| +≥ 1 \| ✓ \|/);
    expect(text).toMatch(/\| small +\| +200 \| +≤ 150 \| ✗ \|/);
    const file = new URL('file:///repository/bench/results/stall.json');
    const short: string = summaryPage(
      [{ topic: 'stall', report, provenance, file }],
      new URL('file:///repository/docs/page.md'),
    );
    expect(short).toMatch(
      /\| \[One check, in memory\]\(\.\.\/bench\/results\/stall\.json\) +\| +1 of 2 \| +small: 200, wanted ≤ 150 \| 2026-01-02 \|/,
    );
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
