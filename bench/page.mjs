// npm run bench:page writes docs/benchmarks.md and its charts from the files in bench/results. With --draft it reads
// and writes bench/results/draft.
import { mkdirSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { chartSvg } from './support/chart.mjs';
import { page } from './support/page.mjs';
import { loadResult, PLACES } from './support/results.mjs';
import { loadTopic, TOPICS } from './support/topics.mjs';

/** @returns `text`, the page, and `charts`, SVG by file name */
export async function render(results) {
  const charts = {};
  const sections = [];
  for (const topic of TOPICS) {
    const result = loadResult(results, topic);
    if (result === undefined) continue;
    const report = (await loadTopic(topic)).report(result);
    if (report.chart !== undefined) charts[`${topic}.svg`] = chartSvg(report.chart);
    const image = report.chart && `benchmarks/${topic}.svg`;
    sections.push({ topic, report, provenance: result.provenance, image });
  }
  return { text: page(sections), charts };
}

export async function writePage({ results, page: file, charts: folder }) {
  const { text, charts } = await render(results);
  mkdirSync(folder, { recursive: true });
  for (const [name, svg] of Object.entries(charts)) writeFileSync(new URL(name, folder), svg);
  writeFileSync(file, text);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({ options: { draft: { type: 'boolean', default: false } } });
  await writePage(values.draft ? PLACES.draft : PLACES.published);
}
